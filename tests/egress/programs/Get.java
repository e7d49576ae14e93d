import java.net.HttpURLConnection;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;

/** Both clients of the JDK. The newer one offers HTTP/2. */
public class Get {
  public static void main(String[] args) throws Exception {
    URI url = URI.create(args[1]);
    byte[] body = new byte[Integer.parseInt(args[2])];
    String key = System.getenv("TEST_KEY");
    if (args[0].equals("client")) {
      HttpRequest.Builder request = HttpRequest.newBuilder(url).header("x-api-key", key);
      if (body.length > 0) request.POST(BodyPublishers.ofByteArray(body));
      System.out.print(HttpClient.newHttpClient().send(request.build(), BodyHandlers.ofString()).body());
      return;
    }
    HttpURLConnection connection = (HttpURLConnection) url.toURL().openConnection();
    connection.setRequestProperty("x-api-key", key);
    if (body.length > 0) {
      connection.setDoOutput(true);
      connection.setFixedLengthStreamingMode(body.length);
      connection.getOutputStream().write(body);
    }
    connection.getInputStream().transferTo(System.out);
  }
}

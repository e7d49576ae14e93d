import { request } from "node:http";
import { connect } from "node:http2";
import { connect as connectTls } from "node:tls";

// Node's own client of HTTP/2 knows no proxy. It prints the answer, or the code of the error.
const url = new URL(process.argv[2]);
const { hostname, port } = new URL(process.env.https_proxy);
const fail = (error) => {
  console.log(error.code);
  process.exit(1);
};
request({ host: hostname, port, method: "CONNECT", path: url.host })
  .on("connect", (_, socket) => {
    const tls = connectTls({ socket, servername: url.hostname, ALPNProtocols: ["h2"] });
    tls.on("error", fail);
    const session = connect(url.origin, { createConnection: () => tls }).on("error", fail);
    session
      .request({ ":path": url.pathname, "x-api-key": process.env.TEST_KEY })
      .on("error", fail)
      .on("end", () => session.close())
      .pipe(process.stdout);
  })
  .end();

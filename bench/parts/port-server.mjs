import { createServer as createHttpServer } from "node:http";
import { createServer } from "node:net";

/*
 * Run inside the sandbox and on the host. Three servers on the loopback, at the given ports: a small answer to each request; bytes as fast as
 * they are taken, as many as the first line of the client says; and one that counts bytes and answers with their number at the end.
 */
const [requests, down, up] = process.argv.slice(2).map(Number);
const piece = Buffer.alloc(256 << 10, "x");

const listen = (server, port) => new Promise((resolve) => server.listen(port, "127.0.0.1", resolve));

const answering = createHttpServer((_, response) => response.end("a small answer\n"));
answering.keepAliveTimeout = 60_000;

const sending = createServer((socket) => {
  socket.on("error", () => undefined);
  socket.once("data", (line) => {
    let left = Number(line.toString());
    const send = () => {
      while (left > 0) {
        const part = left < piece.length ? piece.subarray(0, left) : piece;
        left -= part.length;
        if (!socket.write(part)) {
          socket.once("drain", send);
          return;
        }
      }
      socket.end();
    };
    send();
  });
});

const receiving = createServer({ allowHalfOpen: true }, (socket) => {
  let count = 0;
  socket.on("error", () => undefined);
  socket.on("data", ({ length }) => {
    count += length;
  });
  socket.on("end", () => socket.end(String(count)));
});

await Promise.all([listen(answering, requests), listen(sending, down), listen(receiving, up)]);
console.log([answering, sending, receiving].map((server) => server.address().port).join(" "));

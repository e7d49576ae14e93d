import type { Socket } from "node:net";
import type { DriverConnection } from "../../../contracts/driver.js";

/** Passes bytes on between a client and a server in the sandbox, each direction until its own end. */
export async function join(socket: Socket, inside: DriverConnection): Promise<void> {
  socket.once("close", (hasFailed: boolean) => {
    // After its own end a client may close while its last bytes are still on the way to the server.
    if (hasFailed || !socket.readableEnded) inside.destroy();
  });
  const sent = sendUp(socket, inside).then(
    () => true,
    () => false,
  );
  try {
    await sendDown(inside, socket);
  } catch {
    // The server has reset the connection, or the sandbox is lost.
    socket.resetAndDestroy();
  }
  // The server takes no more, and the client has got all that there was.
  if (!(await sent)) socket.destroySoon();
}

/** What the client sends goes on as it comes. The socket is paused only while there is no room: to read it piece by piece takes twice the time. */
async function sendUp(socket: Socket, inside: DriverConnection): Promise<void> {
  const pieces: Uint8Array[] = [];
  let isWriting = false;
  await new Promise<void>((resolve, reject) => {
    const write = async (): Promise<void> => {
      isWriting = true;
      for (let piece = pieces.shift(); piece !== undefined; piece = pieces.shift()) await inside.write(piece);
      isWriting = false;
      if (socket.readableEnded) resolve();
      else if (socket.isPaused()) socket.resume();
    };
    socket.on("data", (piece: Uint8Array) => {
      pieces.push(piece);
      if (isWriting) socket.pause();
      else write().catch(reject);
    });
    socket.on("end", () => isWriting || resolve());
    socket.on("close", () => socket.readableEnded || reject(new Error("the client has closed the connection")));
    socket.resume();
  });
  await inside.end();
}

async function sendDown(inside: DriverConnection, socket: Socket): Promise<void> {
  for await (const chunk of inside.input) {
    if (socket.destroyed) return;
    if (!socket.write(chunk)) await drained(socket);
  }
  socket.end();
}

/** Resolves when the socket has room for more, or is closed. */
function drained(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      socket.off("drain", done).off("close", done);
      resolve();
    };
    socket.on("drain", done).on("close", done);
  });
}

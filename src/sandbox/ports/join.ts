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

async function sendUp(socket: Socket, inside: DriverConnection): Promise<void> {
  // A plain loop over a socket destroys it at the end of the input, and with it the half that still sends.
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) await inside.write(chunk as Uint8Array);
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

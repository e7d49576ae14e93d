import { connect, type Socket } from "node:net";
import { hostInUrl } from "../host-name.js";
import type { Lifetime } from "../lifetime.js";
import { blockedHost, Refusal } from "../refusal.js";
import type { Upstream } from "./parse-upstream.js";

const MAX_ANSWER = 16 << 10;

/** Opens a connection to a host through an upstream proxy, by CONNECT. The upstream resolves the name. May throw a `Refusal`. */
export async function dialUpstream(
  { host, port }: { host: string; port: number },
  upstream: Upstream,
  life: Lifetime,
  timeout: number,
): Promise<Socket> {
  const socket = connect({ host: upstream.host, port: upstream.port, allowHalfOpen: true, noDelay: true });
  life.onEnd(() => socket.destroy());
  const place = `${hostInUrl(host)}:${port}`;
  const { authorization } = upstream;
  const head = [
    `CONNECT ${place} HTTP/1.1`,
    `Host: ${place}`,
    ...(authorization === undefined ? [] : [`Proxy-Authorization: ${authorization}`]),
  ];
  try {
    const late = (): Error => new Refusal(504, `the upstream proxy did not connect to ${place} in time`);
    const answered = new Promise<string>((resolve, reject) => {
      socket.once("error", reject);
      socket.once("close", () => reject(new Error("closed")));
      socket.once("connect", () => socket.write(`${head.join("\r\n")}\r\n\r\n`));
      readAnswer(socket, resolve, reject);
    });
    const status = /^HTTP\/1\.[01] (\d{3})/.exec(await life.within(answered, timeout, late))?.[1] ?? "none";
    if (!status.startsWith("2")) throw refused(host, port, status, authorization !== undefined);
    socket.removeAllListeners("close");
    socket.on("error", () => undefined); // the next read or write fails
    return socket;
  } catch (error) {
    socket.destroy();
    if (error instanceof Refusal) throw error;
    const code = (error as NodeJS.ErrnoException).code ?? "it closed the connection";
    throw new Refusal(502, `the upstream proxy for ${place} could not be used: ${code}`);
  }
}

function readAnswer(socket: Socket, resolve: (head: string) => void, reject: (error: Error) => void): void {
  let held = Buffer.alloc(0);
  const onReadable = (): void => {
    for (let chunk = socket.read() as Buffer | null; chunk !== null; chunk = socket.read() as Buffer | null) {
      held = Buffer.concat([held, chunk]);
      const end = held.indexOf("\r\n\r\n");
      if (end >= 0) {
        socket.off("readable", onReadable);
        if (held.length > end + 4) socket.unshift(held.subarray(end + 4));
        resolve(held.toString("latin1", 0, end));
        return;
      }
      if (held.length > MAX_ANSWER) reject(new Error("its answer is too long"));
    }
  };
  socket.on("readable", onReadable);
}

function refused(host: string, port: number, status: string, hasPassword: boolean): Refusal {
  if (status !== "407") {
    const message = `the upstream proxy did not connect to ${hostInUrl(host)}:${port}: it answered ${status}`;
    return new Refusal(502, message);
  }
  const why = hasPassword ? "refuses the password of HTTPS_PROXY" : "wants a password, which goes into HTTPS_PROXY";
  return new Refusal(502, `the upstream proxy ${why}`, blockedHost(host, port, "upstream_refused"));
}

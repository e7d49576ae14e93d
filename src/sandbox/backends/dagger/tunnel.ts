import type { Reachable } from "./base.js";
import { daggerError } from "./failure.js";
import type { Session } from "./session.js";

/** Opens a tunnel from this machine to the service that answers on a port, and returns its URL; undefined if none has that port. */
export async function reachService(
  { client }: Session,
  services: readonly Reachable[],
  port: number,
): Promise<string | undefined> {
  const found = services.find(({ ports }) => ports.includes(port));
  if (found === undefined) return undefined;
  try {
    const tunnel = await client
      .host()
      .tunnel(found.service, { ports: [{ backend: port, frontend: 0 }] })
      .start();
    return await tunnel.endpoint({ scheme: "http" });
  } catch (error) {
    throw daggerError(error, `The port ${port} can't be reached`);
  }
}

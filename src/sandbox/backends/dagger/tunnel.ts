import { SandboxError } from "../../../../contracts/errors.js";
import type { Reachable } from "./base.js";
import { daggerError } from "./failure.js";
import type { Session } from "./session.js";

/** Opens a tunnel from this machine to the service that answers on a port, and returns its URL. */
export async function reachService({ client }: Session, services: readonly Reachable[], port: number): Promise<string> {
  const found = services.find(({ ports }) => ports.includes(port));
  if (found === undefined) {
    throw new SandboxError("not_found", `No service of the sandbox has the port ${port}`, {
      hint: `start it as a service: spawn({ argv, service: { hostname: "web", ports: [${port}] } })`,
    });
  }
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

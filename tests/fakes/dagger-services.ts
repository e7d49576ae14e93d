import { type AddressInfo, connect, createServer, type Server } from "node:net";
import { startInTree } from "./dagger-exec.js";
import type { Trees } from "./dagger-trees.js";
import type { ServiceValue } from "./dagger-values.js";

const HEALTHY_WITHIN = 10_000;

/** Starts a service unless it runs: its process, and once its ports answer it is healthy. */
export async function startService(service: ServiceValue, trees: Trees): Promise<void> {
  if (service.running !== undefined) return;
  const { container, args, forwards } = service;
  service.running = { servers: [] };
  if (container !== undefined) {
    const child = startInTree(container, await trees.copy(container.tree), args, trees.root);
    service.running.child = child;
    child.stdin?.end();
    child.stdout?.resume();
    child.stderr?.resume();
    for (const port of container.ports) await healthy(port, () => child.exitCode !== null);
  }
  for (const { backend, frontend } of forwards) {
    if (frontend === backend) continue;
    service.running.servers.push(await forward(backend, frontend));
  }
}

/** Ends what a service runs. */
export function stopService(service: ServiceValue): void {
  service.running?.child?.kill("SIGKILL");
  for (const server of service.running?.servers ?? []) server.close();
  delete service.running;
}

/** Where a service is reached from the host. */
export function endpointOf(service: ServiceValue, port: number | undefined, scheme: string | undefined): string {
  const address = service.running?.servers[0]?.address() as AddressInfo | undefined;
  const found = address?.port ?? port ?? service.container?.ports[0];
  if (found === undefined) throw new Error("no ports exposed");
  return `${scheme === undefined ? "" : `${scheme}://`}localhost:${found}`;
}

async function forward(backend: number, frontend: number): Promise<Server> {
  const server = createServer((downstream) => {
    const upstream = connect(backend, "127.0.0.1");
    for (const socket of [upstream, downstream]) socket.on("error", () => socket.destroy());
    upstream.pipe(downstream).pipe(upstream);
  });
  await new Promise<void>((resolve) => {
    server.listen(frontend, "127.0.0.1", resolve);
  });
  return server;
}

async function healthy(port: number, isOver: () => boolean): Promise<void> {
  const end = Date.now() + HEALTHY_WITHIN;
  while (Date.now() < end && !isOver()) {
    const answers = await new Promise<boolean>((resolve) => {
      const socket = connect(port, "127.0.0.1");
      socket.on("connect", () => resolve(true)).on("error", () => resolve(false));
      socket.on("connect", () => socket.destroy());
    });
    if (answers) return;
    await new Promise((resolve) => {
      setTimeout(resolve, 20);
    });
  }
  throw new Error(`service exited before healthcheck of port ${port}`);
}

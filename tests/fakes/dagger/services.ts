import { startInTree } from "./exec.js";
import { type Networks, offerPort, openTunnel, portOf, reach } from "./network.js";
import type { Trees } from "./trees.js";
import type { RunningService, ServiceValue } from "./values.js";

/** Starts a service unless it runs; one in a container is there once its ports answer from outside of its network. */
export async function startService(service: ServiceValue, trees: Trees, networks: Networks): Promise<void> {
  if (service.running !== undefined) return;
  const { of } = service;
  const running: RunningService = { servers: [], sockets: new Map() };
  service.running = running;
  if ("host" in of) {
    for (const { backend, frontend } of of.host) {
      const socket = networks.newSocket();
      running.servers.push(await offerPort(socket, backend));
      running.sockets.set(frontend || backend, socket);
    }
  } else if ("tunnel" in of) {
    await startService(of.tunnel, trees, networks);
    for (const { backend, frontend } of of.ports) {
      const socket = of.tunnel.running?.sockets.get(backend);
      if (socket === undefined) throw new Error(`the service has no port ${backend}`);
      running.servers.push(await openTunnel(socket, frontend ?? backend));
    }
  } else {
    const { container, args: argv, noInit } = of;
    for (const bound of container.bindings.values()) await startService(bound, trees, networks);
    for (const port of container.ports) running.sockets.set(port, networks.newSocket());
    const { root } = trees;
    const { sockets } = running;
    const child = startInTree(container, await trees.copy(container.tree), { argv, root, noInit, sockets });
    running.child = child;
    child.stdin?.end();
    child.stdout?.resume();
    child.stderr?.resume();
    const end = Date.now() + networks.patience;
    const isOver = (): boolean => child.exitCode !== null || Date.now() > end;
    try {
      for (const [port, socket] of running.sockets) await healthy(port, socket, isOver);
    } catch (error) {
      stopService(service);
      throw error;
    }
  }
}

/** Ends what a service runs. */
export function stopService(service: ServiceValue): void {
  service.running?.child?.kill("SIGKILL");
  for (const server of service.running?.servers ?? []) server.close();
  delete service.running;
}

/** Where a tunnel starts on the host. */
export function endpointOf({ of, running }: ServiceValue, port: number | undefined, scheme: string): string {
  if (!("tunnel" in of)) throw new Error("the stand-in has endpoints of tunnels alone");
  const index = port === undefined ? 0 : of.ports.findIndex(({ backend }) => backend === port);
  const server = running?.servers[index];
  if (server === undefined) throw new Error("no ports exposed");
  return `${scheme === "" ? "" : `${scheme}://`}localhost:${portOf(server)}`;
}

async function healthy(port: number, socket: string, isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    const answers = await reach(socket).then(
      (connection) => connection.destroy().destroyed,
      () => false,
    );
    if (answers) return;
    await new Promise((resolve) => {
      setTimeout(resolve, 20);
    });
  }
  throw new Error(`port ${port} did not answer`);
}

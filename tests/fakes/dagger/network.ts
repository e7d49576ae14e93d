import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { ServiceValue } from "./values.js";

/** The address of a container in its own network. What listens on 127.0.0.1 alone is not reached by it, as with an engine. */
const OWN_ADDRESS = "127.87.0.1";

/** The ways between the networks of a fake engine: each container has one of its own, and reaches what it is bound to. */
export class Networks {
  /** How long what listens in one may take to answer, in milliseconds. */
  readonly patience: number;
  readonly #root: string;
  #count = 0;

  constructor(root: string, patience: number) {
    this.#root = root;
    this.patience = patience;
  }

  /** Where a service can be reached from another network. */
  newSocket(): string {
    return join(this.#root, `s${++this.#count}`);
  }
}

/** What a container calls a service, with the address that the name leads to. */
export function namesOf(bindings: ReadonlyMap<string, ServiceValue>): [address: string, alias: string, ServiceValue][] {
  return [...bindings].map(([alias, service], index) => [`127.87.0.${index + 2}`, alias, service]);
}

/** The command line of a container in a network of its own: the ways in, and the ways to what it is bound to. */
export function networkCommand(
  bindings: ReadonlyMap<string, ServiceValue>,
  own: ReadonlyMap<number, string>,
): string[] {
  const incoming = [...own].flatMap(([port, socket]) => ["out", socket, OWN_ADDRESS, String(port)]);
  const outgoing = namesOf(bindings).flatMap(([address, , service]) =>
    [...(service.running?.sockets ?? [])].flatMap(([port, socket]) => ["in", address, String(port), socket]),
  );
  return [networkProgram(), "net", ...incoming, ...outgoing, "--"];
}

/** Connects to a service of another network. */
export function reach(socket: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const connection = connect({ path: socket, allowHalfOpen: true });
    const over = (): void => reject(new Error("connection refused"));
    connection.on("error", over).on("close", over);
    connection.once("readable", () => {
      const sign = connection.read(1) as Buffer | null;
      if (sign?.toString() === "+") resolve(connection.off("error", over).off("close", over));
      else connection.destroy();
    });
  });
}

/** Makes a port of this machine reachable for containers. */
export async function offerPort(socket: string, port: number): Promise<Server> {
  const server = createServer({ allowHalfOpen: true }, (caller) => {
    const own = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
    own.on("connect", () => {
      caller.write("+");
      connectBoth(caller, own);
    });
    for (const end of [caller, own]) end.on("error", () => [caller, own].map((each) => each.destroy()));
  });
  await listening(server, () => server.listen(socket));
  return server;
}

/** Opens a port of this machine that leads to a service of another network. */
export async function openTunnel(socket: string, frontend: number): Promise<Server> {
  const server = createServer({ allowHalfOpen: true }, (caller) => {
    caller.on("error", () => caller.destroy());
    reach(socket).then(
      (service) => {
        service.on("error", () => [caller, service].map((each) => each.destroy()));
        connectBoth(caller, service);
      },
      () => caller.destroy(),
    );
  });
  await listening(server, () => server.listen(frontend, "127.0.0.1"));
  return server;
}

/** The port that a tunnel starts at. */
export function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}

function connectBoth(one: Socket, other: Socket): void {
  one.pipe(other);
  other.pipe(one);
}

async function listening(server: Server, start: () => unknown): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.on("listening", resolve).on("error", reject);
    start();
  });
}

/** Compiles the program that makes networks; whoever needs it first does so for all tests of a run. */
export function networkProgram(): string {
  const place = process.env["GLOVEBOX_TEST_PLACE"];
  if (place === undefined) throw new Error("there is no place for compiled programs: vitest ran without its set-up");
  const shared = join(place, "dagger-network");
  if (existsSync(shared)) return shared;
  const own = mkdtempSync(join(place, "network-"));
  const source = fileURLToPath(new URL("network.c", import.meta.url));
  execFileSync("cc", ["-static", "-O1", "-Wall", "-Wextra", "-Werror", "-o", join(own, "program"), source]);
  renameSync(join(own, "program"), shared);
  rmSync(own, { recursive: true });
  return shared;
}

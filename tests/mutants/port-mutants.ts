import { createServer, type Server } from "node:net";
import type { DriverConnection } from "../../contracts/driver.js";
import type { Driver } from "../../src/sandbox/types.js";
import { change } from "../support/change.js";
import type { Mutant } from "./mutant.js";

/** Listeners that a mutant leaves behind. */
export const leftListeners: Server[] = [];

function connects(alter: (connection: DriverConnection) => Partial<DriverConnection>): (driver: Driver) => Driver {
  return (driver) =>
    change(driver, {
      async connect(port, signal) {
        const connection = (await driver.connect?.(port, signal)) as DriverConnection;
        return change(connection, alter(connection));
      },
    });
}

async function* upTo(bytes: number, input: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const chunk of input) {
    yield chunk.subarray(0, bytes);
    bytes -= chunk.length;
    if (bytes <= 0) return;
  }
}

/** Mutants that get the ports of a sandbox wrong. */
export const portMutants: readonly Mutant[] = [
  {
    name: "has an address that leads nowhere",
    caught: "ports.url",
    because: /fetch failed/,
    sandbox: (sandbox) => change(sandbox, { url: async () => "http://127.0.0.1:9" }),
  },
  {
    name: "keeps the end of the client to itself",
    caught: "ports.two-way",
    because: /within 5000 ms/,
    patience: 5_000,
    driver: connects(() => ({ end: async () => undefined })),
  },
  {
    name: "ends the connection when the client has no more to say",
    caught: "ports.two-way",
    because: /^what the server sent after our end: expected "bye"/,
    driver: connects((connection) => ({ end: async () => connection.destroy() })),
  },
  {
    name: "cuts a large answer off",
    caught: "ports.large",
    because: /^what came back: expected 6000000 bytes, got 1000000/,
    driver: connects((connection) => ({ input: upTo(1_000_000, connection.input) })),
  },
  {
    name: "answers for a server that is not there",
    caught: "ports.nobody",
    because: /^what came: expected/,
    driver: (driver) =>
      change(driver, {
        connect: async () => ({
          input: upTo(5, [Buffer.from("hello")] as unknown as AsyncIterable<Uint8Array>),
          write: async () => undefined,
          end: async () => undefined,
          destroy: () => undefined,
        }),
      }),
  },
  {
    name: "goes on listening after teardown",
    caught: "ports.gone",
    because: /^what a client gets after teardown: expected "ECONNREFUSED", got "a connection"/,
    sandbox(sandbox) {
      const ports = new Set<number>();
      return change(sandbox, {
        async url(port) {
          const url = await sandbox.url(port);
          ports.add(Number(new URL(url).port));
          return url;
        },
        async teardown() {
          await sandbox.teardown();
          for (const port of ports) {
            ports.delete(port);
            const server = createServer().listen(port, "127.0.0.1");
            leftListeners.push(server);
            await new Promise((resolve) => server.once("listening", resolve));
          }
        },
      });
    },
  },
  {
    name: "waits for a server without looking",
    caught: "ports.wait-timeout",
    because: /^waitForPort: expected unavailable, but it resolved/,
    driver: (driver) => change(driver, { waitForPort: async () => true }),
  },
  {
    name: "looks for a server once",
    caught: "ports.wait",
    because: /Nobody listened on port 8127/,
    driver: (driver) =>
      change(driver, {
        waitForPort: async (port, _, signal) => (await driver.waitForPort?.(port, 0, signal)) === true,
      }),
  },
  {
    name: "takes any number for a port",
    caught: "ports.range",
    because: /^url\(0\): expected invalid_argument, but it resolved/,
    sandbox: (sandbox) => change(sandbox, { url: (port) => sandbox.url(port === 0 ? 80 : port) }),
  },
];

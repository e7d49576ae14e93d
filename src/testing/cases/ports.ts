import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { check, equal, equalBytes, includes, refuses, within } from "../assert.js";
import { noise } from "../bytes.js";
import { aside } from "../script.js";
import { findSocketTool, type SocketTool } from "../sockets.js";
import type { ConformanceCase, ConformanceContext } from "../types.js";

const BOUND = 30_000;

const hasPorts: NonNullable<ConformanceCase["needs"]> = ({ ports }) =>
  ports ? undefined : "capabilities.ports is false";

/** The rest is about plain connections. */
const hasPlainPorts: NonNullable<ConformanceCase["needs"]> = (capabilities, harness) =>
  harness.host?.hasHttpPorts === true
    ? "the addresses of ports are the service's own, which carry HTTP and nothing else"
    : hasPorts(capabilities, harness);

async function toolOf({ sandbox, skip }: ConformanceContext): Promise<SocketTool> {
  return (await findSocketTool(sandbox)) ?? skip("no program in the sandbox can open a socket");
}

/** A server that sends back what it gets, and the address at which a plain connection reaches it. It ends with the case. */
async function echoAt(
  context: ConformanceContext,
  host: "127.0.0.1" | "::1" = "127.0.0.1",
): Promise<{ host: string; port: number; inside: number }> {
  const { sandbox, skip, defer } = context;
  const server = (await (await toolOf(context)).echo(host)) ?? skip(`the sandbox has no ${host}`);
  defer(async () => {
    await server.process.kill("SIGKILL");
    await server.process.wait();
  });
  return { ...addressOf(await sandbox.url(server.port)), inside: server.port };
}

function addressOf(url: string): { host: string; port: number } {
  const { hostname, port } = new URL(url);
  return { host: hostname.replace(/^\[|\]$/g, ""), port: Number(port) };
}

/** A connection that is destroyed with the case. */
async function dial({ defer }: ConformanceContext, { host, port }: { host: string; port: number }): Promise<Socket> {
  const socket = connect({ host, port, allowHalfOpen: true });
  socket.on("error", () => undefined);
  defer(async () => socket.destroy());
  await within(BOUND, `a connection to ${host}:${port}`, once(socket, "connect"));
  return socket;
}

/** Everything until the end of the connection. */
async function readAll(socket: Socket): Promise<Buffer> {
  const chunks: Buffer[] = [];
  socket.on("data", (chunk: Buffer) => chunks.push(chunk));
  await within(
    BOUND,
    "the end of the connection",
    new Promise((resolve) => socket.on("end", resolve).on("close", resolve)),
  );
  return Buffer.concat(chunks);
}

export const portCases: readonly ConformanceCase[] = [
  {
    id: "ports.url",
    title: "the URL of a server",
    requirement: "`url` returns an address that leads to a server in the sandbox, or is refused with `unsupported`.",
    needs: hasPorts,
    async refused({ sandbox }) {
      await refuses("unsupported", "url", async () => sandbox.url(8080));
    },
    async run(context) {
      const { sandbox } = context;
      const server = await (await toolOf(context)).serve("HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello");
      const address = await sandbox.url(server.port);
      check(typeof address === "string", "there is no address");
      equal(await (await fetch(address)).text(), "hello", "what is at that address");
      await server.process.kill("SIGKILL");
      await server.process.wait();
    },
  },
  {
    id: "ports.two-way",
    title: "a connection with two directions",
    requirement: "A connection stays open, carries bytes both ways as they come, and each direction has its own end.",
    needs: hasPlainPorts,
    async run(context) {
      const socket = await dial(context, await echoAt(context));
      for (const word of ["one", "two", "three"]) {
        const answer = aside(once(socket, "data") as Promise<[Buffer]>);
        socket.write(word);
        equal((await within(BOUND, `the answer to ${word}`, answer))[0].toString(), word, "what came back");
      }
      const rest = readAll(socket);
      socket.end();
      equal((await rest).toString(), "bye", "what the server sent after our end");
    },
  },
  {
    id: "ports.large",
    title: "a large body",
    requirement: "Every byte of a large stream arrives in order, also when its reader is slow.",
    needs: hasPlainPorts,
    async run(context) {
      const socket = await dial(context, await echoAt(context));
      const sent = noise(6_000_000, 7);
      // Whatever is between us and the server fills up at first.
      for (let pauses = 0; pauses < 5; pauses++) {
        socket.once("data", () => {
          socket.pause();
          setTimeout(() => socket.resume(), 20);
        });
      }
      const rest = readAll(socket);
      socket.end(sent);
      const got = await rest;
      equalBytes(got.subarray(0, sent.length), sent, "what came back");
      equal(got.subarray(sent.length).toString(), "bye", "what came last");
    },
  },
  {
    id: "ports.ipv6",
    title: "a server on ::1",
    requirement: "A server that listens on ::1 only is reached too.",
    needs: hasPlainPorts,
    async run(context) {
      const address = await echoAt(context, "::1");
      const socket = await dial(context, address);
      socket.end("six");
      equal((await readAll(socket)).toString(), "sixbye", "what came back");
      await context.sandbox.waitForPort(address.inside, { timeout: 10_000 });
    },
  },
  {
    id: "ports.nobody",
    title: "a port on which nobody listens",
    requirement: "A connection to a port on which nobody listens is closed without a byte, and the sandbox goes on.",
    needs: hasPlainPorts,
    async run(context) {
      const socket = await dial(context, addressOf(await context.sandbox.url(9)));
      equal((await readAll(socket)).toString(), "", "what came");
    },
  },
  {
    id: "ports.gone",
    title: "no port after teardown",
    requirement: "Teardown ends every connection to the sandbox, and nobody listens for it any more.",
    needs: hasPlainPorts,
    closes: true,
    async run(context) {
      const address = await echoAt({ ...context, defer: () => undefined });
      const socket = await dial(context, address);
      socket.write("x");
      await within(BOUND, "an answer", once(socket, "data"));
      const ended = readAll(socket);
      await within(60_000, "teardown", context.sandbox.teardown());
      await ended;
      const again = connect(address);
      const outcome = new Promise<string>((resolve) => {
        again.on("connect", () => resolve("a connection"));
        again.on("error", ({ code }: NodeJS.ErrnoException) => resolve(code ?? "an error"));
      });
      const what = await within(BOUND, "an outcome", outcome);
      again.destroy();
      equal(what, "ECONNREFUSED", "what a client gets after teardown");
    },
  },
  {
    id: "ports.wait",
    title: "waiting for a server",
    requirement: "`waitForPort` returns when a server accepts connections, also one that starts later.",
    needs: hasPorts,
    async run(context) {
      const { sandbox, skip, defer } = context;
      const tool = await toolOf(context);
      const waiting = aside(sandbox.waitForPort(8127, { timeout: BOUND }));
      const server = (await tool.echo("127.0.0.1", 8127)) ?? skip("the sandbox has no port 8127");
      defer(async () => {
        await server.process.kill("SIGKILL");
        await server.process.wait();
      });
      await within(BOUND, "waitForPort", waiting);
      await within(BOUND, "waitForPort of a server that runs", sandbox.waitForPort(8127));
    },
  },
  {
    id: "ports.wait-timeout",
    title: "waiting in vain",
    requirement:
      "`waitForPort` fails with `unavailable` at its timeout and names port and time; aborted, with `aborted`.",
    needs: hasPorts,
    async run({ sandbox }) {
      const error = await within(
        BOUND,
        "waitForPort",
        refuses("unavailable", "waitForPort", () => sandbox.waitForPort(9, { timeout: 400 })),
      );
      for (const part of ["9", "400 ms"]) includes(error.message, part, "the message");
      const controller = new AbortController();
      const aborted = refuses("aborted", "waitForPort", () => sandbox.waitForPort(9, { signal: controller.signal }));
      controller.abort();
      await within(BOUND, "the aborted call", aborted);
    },
  },
  {
    id: "ports.range",
    title: "numbers that are no port",
    requirement: "A port below 1 or above 65535, or that is no whole number, is `invalid_argument`.",
    needs: hasPorts,
    async run({ sandbox, open }) {
      for (const port of [0, 65_536, -1, 1.5, Number.NaN, "80" as unknown as number]) {
        await refuses("invalid_argument", `url(${port})`, async () => sandbox.url(port));
        await refuses("invalid_argument", `waitForPort(${port})`, async () => sandbox.waitForPort(port));
      }
      await refuses("invalid_argument", "publish: [0]", () => open({ publish: [0] }));
      await refuses("invalid_argument", "timeout: -1", async () => sandbox.waitForPort(80, { timeout: -1 }));
    },
  },
  {
    id: "ports.published",
    title: "published ports",
    requirement:
      "A sandbox opened with `publish` has these ports at once, and a kept one has them again when it is reopened.",
    needs: hasPorts,
    async run({ open, harness, defer }) {
      const first = await open({ publish: [8128, 8128], keep: true });
      const { id } = first;
      defer(async () => {
        await first.teardown();
        if (harness.remove) return harness.remove(id);
        return (await harness.open({ id, keep: false })).teardown();
      });
      equal(first.published, [8128], "the published ports");
      await first.teardown();
      const second = await open({ id });
      equal(second.published, [8128], "the published ports of the reopened one");
      check(URL.canParse(await second.url(8128)), "the published port has no address");
      await second.teardown();
    },
  },
];

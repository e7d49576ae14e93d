import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { SandboxEvent } from "../../../contracts/types.js";
import { createLocalSandbox } from "../../../src/sandbox/backends/local.js";
import type { Sandbox } from "../../../src/sandbox/types.js";
import { descendants, stillBelow } from "../../support/processes/descendants.js";
import { createScratch, type Scratch } from "../../support/scratch.js";

/** Servers inside, each with one behaviour. */
const SERVERS = `
const net = require("node:net");
const serve = (port, host, take) => net.createServer({ allowHalfOpen: true }, (socket) => {
  socket.on("error", () => {});
  take(socket);
}).listen(port, host);
serve(4000, "127.0.0.1", (socket) => socket.pipe(socket)); // echoes, and ends with its client
serve(4001, "::1", (socket) => socket.end("six"));
serve(4002, "127.0.0.2", (socket) => socket.end("elsewhere"));
serve(4003, "127.0.0.1", (socket) => socket.once("data", () => socket.resetAndDestroy()));
let stalled;
serve(4004, "127.0.0.1", (socket) => { stalled = socket.pause(); }); // reads nothing
serve(4005, "127.0.0.1", (socket) => { stalled?.destroy(); socket.destroy(); }); // ends the one that is stalled
serve(4006, "127.0.0.1", (socket) => {
  socket.end("first");
  let length = 0;
  socket.on("data", (chunk) => { length += chunk.length; }).on("end", () => console.log("took " + length));
}); // ends at once, and still reads
serve(4007, "127.0.0.1", (socket) => socket.on("data", (chunk) => console.log(String(chunk))).on("close", () => console.log("closed")).on("error", (error) => console.log(error.code)));
setTimeout(() => console.log("ready"), 0);
`;

let scratch: Scratch;
let sandbox: Sandbox;
let said = "";
const events: SandboxEvent[] = [];

beforeAll(async () => {
  scratch = createScratch();
  sandbox = await createLocalSandbox({ onEvent: (event) => events.push(event) });
  const server = await sandbox.spawn({ argv: ["node", "-e", SERVERS] });
  void (async () => {
    for await (const chunk of server.stdout) said += Buffer.from(chunk).toString();
  })();
  await sandbox.waitForPort(4005);
});
afterAll(async () => {
  await sandbox.teardown();
  scratch.remove();
});

async function portOf(port: number, of: Sandbox = sandbox): Promise<number> {
  return Number(new URL(await of.url(port)).port);
}

async function dial(port: number, host = "127.0.0.1"): Promise<Socket> {
  const socket = connect({ port, host, allowHalfOpen: true });
  await once(socket, "connect");
  return socket;
}

/** How a connection ends that nobody serves. */
async function refusal(port: number): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  socket.resume();
  return await new Promise((resolve) => {
    socket.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    socket.on("end", () => resolve("a clean end"));
  });
}

describe("a relayed connection", () => {
  test("reaches a server on either address, from either address, at one port", async () => {
    const [four, six] = [await portOf(4000), await portOf(4001)];
    expect(await portOf(4000)).toBe(four);
    expect(await sandbox.url(4000)).toBe(`http://127.0.0.1:${four}`);
    for (const host of ["127.0.0.1", "::1"]) {
      expect(await text(await dial(six, host))).toBe("six");
      const socket = await dial(four, host);
      socket.end(host);
      expect(await text(socket)).toBe(host);
    }
  });

  test("has two directions, each with its own end", async () => {
    const socket = await dial(await portOf(4006));
    const [first] = (await once(socket, "data")) as [Buffer];
    expect(String(first)).toBe("first");
    await once(socket, "end");
    socket.write(Buffer.alloc(1_000_000));
    socket.end();
    await expect.poll(() => said, { timeout: 30_000 }).toContain("took 1000000\n");
  });

  test("carries every byte of a large stream, in both directions at once", async () => {
    const socket = await dial(await portOf(4000));
    const sent = Buffer.alloc(20_000_000, "0123456789abcdefg");
    socket.end(sent);
    const chunks: Buffer[] = [];
    for await (const chunk of socket) chunks.push(chunk as Buffer);
    expect(Buffer.concat(chunks).equals(sent)).toBe(true);
  });

  test("slows a client down whose server does not read, and takes no memory for it", async () => {
    const socket = await dial(await portOf(4004));
    const ended = once(socket, "error");
    let passed = 0;
    const chunk = Buffer.alloc(1 << 20);
    const before = process.memoryUsage().rss;
    for (let quiet = 0; quiet < 5; ) {
      if (socket.write(chunk)) passed += chunk.length;
      const drained = new Promise<boolean>((resolve) => socket.once("drain", () => resolve(true)));
      const late = new Promise<boolean>((resolve) => setTimeout(resolve, 100, false));
      if (await Promise.race([drained, late])) [passed, quiet] = [passed + chunk.length, 0];
      else quiet++;
      expect(passed).toBeLessThan(64 << 20);
    }
    expect(process.memoryUsage().rss - before).toBeLessThan(64 << 20);
    await refusal(await portOf(4005));
    await ended;
  });

  test("ends as the server ends it: by a reset", async () => {
    const socket = await dial(await portOf(4003));
    socket.write("x");
    const [error] = (await once(socket, "error")) as [NodeJS.ErrnoException];
    expect(error.code).toBe("ECONNRESET");
  });

  test("ends as the client ends it: by a reset", async () => {
    const socket = await dial(await portOf(4007));
    socket.write("arrived");
    await expect.poll(() => said, { timeout: 30_000 }).toContain("arrived\n");
    socket.resetAndDestroy();
    await expect.poll(() => said, { timeout: 30_000 }).toContain("ECONNRESET\nclosed\n");
  });
});

describe("nothing else is reached", () => {
  test("by a port on which nobody listens, and the sandbox goes on", async () => {
    expect(await refusal(await portOf(9))).toBe("ECONNRESET");
    expect((await sandbox.exec({ argv: ["echo", "on"] })).stdout).toBe("on\n");
  });

  test("not another address of the sandbox", async () => {
    expect(await refusal(await portOf(4002))).toBe("ECONNRESET");
  });

  test("not a server of the host", async () => {
    let connections = 0;
    const server = createServer((socket) => {
      connections++;
      socket.destroy();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    const port = typeof address === "object" ? (address?.port ?? 0) : 0;
    expect(await refusal(await portOf(port))).toBe("ECONNRESET");
    expect(connections).toBe(0);
    server.close();
  });

  test("nor by another user of this machine", async ({ skip }) => {
    if (process.getuid?.() !== 0) skip("only root can become another user");
    const port = await portOf(4000);
    const script = `const socket = require("node:net").connect(${port}, process.argv[1]);
      socket.on("error", (error) => console.log(error.code)).on("end", () => console.log("end")).on("data", (chunk) => console.log(String(chunk)));
      socket.end("let me in");`;
    const as = (uid: number, host: string): Promise<string> =>
      text(
        spawn(process.execPath, ["-e", script, host], { uid, stdio: ["ignore", "pipe", "inherit"], cwd: "/" }).stdout,
      );
    for (const host of ["127.0.0.1", "::1"]) expect(await as(12345, host)).toBe("ECONNRESET\n");
    expect(await as(0, "127.0.0.1")).toBe("let me in\nend\n");
    expect(events.filter(({ type }) => type === "warning").map(({ message }) => message)).toEqual([
      "A connection to port 4000 of user 12345 was closed: only user 0, who opened the sandbox, can use it",
    ]);
  });
});

describe("many connections", () => {
  test("200 at once, and commands go on beside them", async () => {
    const port = await portOf(4000);
    const sockets = await Promise.all(Array.from({ length: 200 }, () => dial(port)));
    const answers = sockets.map((socket, index) => {
      socket.write(`${index}`);
      return once(socket, "data").then(([chunk]) => String(chunk));
    });
    expect(await Promise.all(answers)).toEqual(sockets.map((_, index) => `${index}`));
    expect((await sandbox.exec({ argv: ["echo", "on"] })).stdout).toBe("on\n");
    for (const socket of sockets) socket.end();
    await Promise.all(sockets.map((socket) => once(socket.resume(), "close")));
  });

  test("more than there can be wait for their turn, and too many are refused", async () => {
    const port = await portOf(4000);
    const sockets = await Promise.all(Array.from({ length: 256 + 256 + 8 }, () => dial(port)));
    let [answered, refused] = [0, 0];
    for (const socket of sockets) {
      socket.on("data", () => answered++).on("error", () => refused++);
      socket.write("x");
    }
    await expect.poll(() => [answered, refused], { timeout: 30_000 }).toEqual([256, 8]);
    expect((await sandbox.exec({ argv: ["echo", "on"] })).stdout).toBe("on\n");
    for (const socket of sockets) socket.end();
    await expect.poll(() => [answered, refused], { timeout: 30_000 }).toEqual([512, 8]);
  });
});

describe("the end", () => {
  async function openAnother(): Promise<{ other: Sandbox; port: number; socket: Socket; closed: Promise<unknown> }> {
    const other = await createLocalSandbox({ publish: [4000] });
    expect(other.published).toEqual([4000]);
    const port = await portOf(4000, other);
    await other.spawn({ argv: ["node", "-e", SERVERS] });
    await other.waitForPort(4000);
    const socket = await dial(port);
    socket.write("x");
    await once(socket, "data");
    const closed = new Promise((resolve) => socket.on("error", () => resolve("closed")));
    return { other, port, socket, closed };
  }

  test("of the sandbox takes listeners, connections and processes with it", async () => {
    const before = new Set(descendants(process.pid));
    const { other, port, closed } = await openAnother();
    await other.teardown();
    expect(await closed).toBe("closed");
    for (const host of ["127.0.0.1", "::1"])
      await expect(dial(port, host)).rejects.toMatchObject({ code: "ECONNREFUSED" });
    await expect(other.url(4000)).rejects.toMatchObject({ code: "closed" });
    expect(await stillBelow(before)).toEqual([]);
  });

  test("of its guest takes listeners and connections with it", async () => {
    const { other, port, closed } = await openAnother();
    const guest = descendants(process.pid).find((pid) => {
      const line = readFileSync(`/proc/${pid}/cmdline`, "utf8");
      return line.includes("\0serve\0") && line.includes(other.workDir);
    });
    process.kill(guest ?? Number.NaN, "SIGKILL");
    expect(await closed).toBe("closed");
    await expect.poll(() => refusalOf(port), { timeout: 30_000 }).toBe("ECONNREFUSED");
    await other.teardown();
  });
});

async function refusalOf(port: number): Promise<string | undefined> {
  try {
    (await dial(port)).destroy();
    return undefined;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code;
  }
}

describe("waitForPort", () => {
  test("returns once a server accepts", async () => {
    await using other = await createLocalSandbox({});
    const waiting = other.waitForPort(5000, { timeout: 20_000 });
    await other.spawn({ argv: ["node", "-e", `require("node:net").createServer().listen(5000, "::1")`] });
    await waiting;
  });

  test("fails at its timeout, and names port and time", async () => {
    const started = performance.now();
    await expect(sandbox.waitForPort(9, { timeout: 300 })).rejects.toMatchObject({
      code: "unavailable",
      operation: "waitForPort",
      message: "Nobody listened on port 9 in the sandbox within 300 ms",
    });
    expect(performance.now() - started).toBeGreaterThan(295);
  });

  test("can be aborted", async () => {
    const controller = new AbortController();
    const waiting = sandbox.waitForPort(9, { signal: controller.signal });
    controller.abort();
    await expect(waiting).rejects.toMatchObject({ code: "aborted" });
    await expect(sandbox.waitForPort(9, { signal: controller.signal })).rejects.toMatchObject({ code: "aborted" });
  });
});

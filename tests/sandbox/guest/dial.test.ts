import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { guestBinary } from "../../../src/sandbox/guest/binary.js";
import { GuestChannel } from "../../../src/sandbox/guest/channel.js";
import { startCommand } from "../../../src/sandbox/guest/guest-process.js";
import { text } from "../../support/guest/plain-guest.js";

let root: string;
let server: Server;
beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), "glovebox-dial-"));
  server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
});
afterEach(() => {
  server.close();
  rmSync(root, { recursive: true, force: true });
});

const portOf = (): string => String((server.address() as AddressInfo).port);
const STEP = { GLOVEBOX_STEP: "7-of-9" };

function dial(args: readonly string[], env: NodeJS.ProcessEnv): Promise<{ code: number | null; stderr: string }> {
  const child = spawn(guestBinary(), ["dial", ...args], { env, stdio: ["ignore", "ignore", "pipe"] });
  let stderr = "";
  child.stderr.on("data", (chunk: Buffer) => {
    stderr += chunk;
  });
  return new Promise((resolve) => child.on("close", (code) => resolve({ code, stderr })));
}

/** The first connection, and the line that it begins with. */
function called(): Promise<{ socket: Socket; line: string }> {
  return new Promise((resolve) => {
    server.once("connection", (socket) => {
      socket.once("data", (chunk: Buffer) => {
        const end = chunk.indexOf("\n");
        socket.pause().unshift(chunk.subarray(end + 1));
        resolve({ socket, line: chunk.toString("utf8", 0, end) });
      });
    });
  });
}

test("says who it is, serves, and ends with 0 when the host hangs up", async () => {
  const calling = called();
  const env = { ...STEP, GIVEN: "inherited", BOTH: "inherited", OTHER: "unseen" };
  const ended = dial(["127.0.0.1", portOf(), root, "GIVEN", "BOTH", "ABSENT"], env);
  const { socket, line } = await calling;
  expect(line).toBe("7-of-9");
  const channel = new GuestChannel(socket);
  socket.resume();
  await channel.hello;
  const spec = { argv: ["/usr/bin/env"], cwd: root, env: { BOTH: "own" }, stdin: "none" } as const;
  const process = await startCommand(channel, spec, "");
  expect((await text(process.stdout)).trim().split("\n").sort()).toEqual(["BOTH=own", "GIVEN=inherited"]);
  expect(await process.wait()).toMatchObject({ exitCode: 0 });
  const look = ["/bin/sh", "-c", "tr '\\0' '\\n' < /proc/$PPID/environ; tr '\\0' ' ' < /proc/$PPID/cmdline"];
  const looking = await startCommand(channel, { ...spec, argv: look }, "");
  const seen = await text(looking.stdout);
  expect(seen).toContain("GIVEN=inherited\n");
  expect(seen).toContain(" dial ");
  expect(seen).not.toMatch(/GLOVEBOX|7-of-9/);
  const failing = await startCommand(channel, { ...spec, argv: ["/bin/sh", "-c", "exit 128"] }, "");
  expect(await failing.wait()).toMatchObject({ exitCode: 128 });
  channel.close();
  expect(await ended).toEqual({ code: 0, stderr: "" });
});

test("without a step to name, a host that listens, or a root, it does nothing", async () => {
  expect((await dial(["127.0.0.1", portOf(), root], {})).code).toBe(125);
  expect((await dial(["127.0.0.1", portOf()], STEP)).code).toBe(125);
  expect((await dial(["127.0.0.1", portOf(), join(root, "missing")], STEP)).code).toBe(125);
  const port = portOf();
  server.close();
  expect(await dial(["127.0.0.1", port, root], STEP)).toEqual({
    code: 125,
    stderr: `glovebox: the host does not answer at 127.0.0.1:${port}\n`,
  });
});

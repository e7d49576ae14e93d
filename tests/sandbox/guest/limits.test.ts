import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createLocalSandbox } from "../../../src/sandbox/backends/local.js";
import { guestBinary } from "../../../src/sandbox/guest/binary.js";
import { GuestChannel } from "../../../src/sandbox/guest/channel.js";
import { startCommand } from "../../../src/sandbox/guest/guest-process.js";
import type { DriverProcess } from "../../../src/sandbox/types.js";
import { text } from "../../support/guest/plain-guest.js";

test("a guest that runs out of descriptors refuses calls, and those under way go on", async () => {
  const root = mkdtempSync(join(tmpdir(), "glovebox-limits-"));
  const child = spawn("sh", ["-c", 'ulimit -n 40; exec "$0" serve "$1"', guestBinary(), root], {
    stdio: ["ignore", "ignore", "inherit", "pipe"],
  });
  const ended = once(child, "exit");
  const channel = new GuestChannel(child.stdio[3] as Socket);
  try {
    await channel.hello;
    const spec = { cwd: root, env: { PATH: "/usr/bin:/bin" }, stdin: "pipe" } as const;
    const processes: DriverProcess[] = [];
    const fill = async (): Promise<void> => {
      while (processes.length < 40) processes.push(await startCommand(channel, { ...spec, argv: ["cat"] }, ""));
    };
    await expect(fill()).rejects.toMatchObject({ code: "unavailable" });
    expect(processes.length).toBeGreaterThan(3);
    for (const [index, process] of processes.entries()) {
      await process.writeStdin(Buffer.from(`${index}`));
      await process.closeStdin();
      expect(await text(process.stdout)).toBe(`${index}`);
      expect(await process.wait()).toEqual({ exitCode: 0 });
    }
    const last = await startCommand(channel, { ...spec, argv: ["sh", "-c", "ulimit -n"] }, "");
    expect(await text(last.stdout)).toBe("40\n");
  } finally {
    channel.close();
    await ended;
    rmSync(root, { recursive: true });
  }
});

test("a confined command has three descriptors, and goes before the guest when memory ends", async () => {
  await using sandbox = await createLocalSandbox({});
  const { stdout } = await sandbox.exec({ argv: ["sh", "-c", "cat /proc/self/oom_score_adj; ls /proc/self/fd"] });
  expect(stdout).toBe("500\n0\n1\n2\n3\n");
});

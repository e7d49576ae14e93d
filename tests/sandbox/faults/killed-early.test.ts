import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { createLocalSandbox } from "../../../src/sandbox/backends/local.js";
import { until } from "../../support/guest/plain-guest.js";
import { descendants } from "../../support/processes/descendants.js";

const SIGTERM = 15;

/** A line of what the system says of a process; empty when it has ended. */
function statusOf(pid: number, field: string): string {
  try {
    return new RegExp(`^${field}:\\s+(.*)$`, "m").exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? "";
  } catch {
    return "";
  }
}

function isPending(pid: number, signal: number): boolean {
  return (BigInt(`0x${statusOf(pid, "ShdPnd") || 0}`) & (1n << BigInt(signal - 1))) !== 0n;
}

/** The process that waits to become the next command: below its supervisor, which is below the guest. */
function waiting(workDir: string): number | undefined {
  const serving = descendants(process.pid).filter((pid) => {
    try {
      const line = readFileSync(`/proc/${pid}/cmdline`, "utf8");
      return line.startsWith("/glovebox/guest\0serve\0") && line.includes(workDir);
    } catch {
      return false;
    }
  });
  const below = (pid: number): boolean => serving.includes(Number(statusOf(pid, "PPid")));
  return serving.find((pid) => below(pid) && below(Number(statusOf(pid, "PPid"))));
}

test("a command that gets a signal before it has begun ends by that signal, and the next one runs", async () => {
  await using sandbox = await createLocalSandbox();
  await sandbox.exec({ argv: ["true"] });
  await until(() => waiting(sandbox.workDir) !== undefined);
  const next = waiting(sandbox.workDir) as number;
  // It cannot take its order while it is stopped, and when it goes on the signal is there first.
  process.kill(next, "SIGSTOP");
  await until(() => statusOf(next, "State").startsWith("T"));
  const command = await sandbox.spawn({ argv: ["sh", "-c", "echo begun; sleep 60"] });
  await command.kill("SIGTERM");
  await until(() => isPending(next, SIGTERM));
  process.kill(next, "SIGCONT");
  expect(await new Response(command.stdout).text()).toBe("");
  expect(await command.wait()).toMatchObject({ exitCode: 128 + SIGTERM, signal: "SIGTERM", timedOut: false });
  expect((await sandbox.exec({ argv: ["echo", "after"] })).stdout).toBe("after\n");
});

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

/** The supervisor that waits for the next command: below the guest. */
function waiting(workDir: string): number | undefined {
  const serving = descendants(process.pid).filter((pid) => {
    try {
      const line = readFileSync(`/proc/${pid}/cmdline`, "utf8");
      return line.startsWith("/glovebox/guest\0serve\0") && line.includes(workDir);
    } catch {
      return false;
    }
  });
  return serving.find((pid) => serving.includes(Number(statusOf(pid, "PPid"))));
}

test("a command that gets a signal before it has begun ends by that signal, and the next one runs", async () => {
  await using sandbox = await createLocalSandbox();
  await sandbox.exec({ argv: ["true"] });
  await until(() => waiting(sandbox.workDir) !== undefined);
  const supervisor = waiting(sandbox.workDir) as number;
  // It cannot take its order while it is stopped, and when it goes on the signal is there too.
  process.kill(supervisor, "SIGSTOP");
  await until(() => statusOf(supervisor, "State").startsWith("T"));
  const command = await sandbox.spawn({ argv: ["sleep", "60"] });
  await command.kill("SIGTERM");
  // Answered after the signal was passed on.
  await sandbox.stat("nothing");
  process.kill(supervisor, "SIGCONT");
  expect(await command.wait()).toMatchObject({ exitCode: 128 + SIGTERM, signal: "SIGTERM", timedOut: false });
  expect((await sandbox.exec({ argv: ["echo", "after"] })).stdout).toBe("after\n");
});

test("a supervisor that dies before it has its command fails that command, and the next one runs", async () => {
  await using sandbox = await createLocalSandbox();
  await sandbox.exec({ argv: ["true"] });
  await until(() => waiting(sandbox.workDir) !== undefined);
  const supervisor = waiting(sandbox.workDir) as number;
  process.kill(supervisor, "SIGSTOP");
  await until(() => statusOf(supervisor, "State").startsWith("T"));
  const command = await sandbox.spawn({ argv: ["sleep", "60"] });
  process.kill(supervisor, "SIGKILL");
  expect(await command.wait()).toMatchObject({ exitCode: 137, signal: "SIGKILL" });
  expect((await sandbox.exec({ argv: ["echo", "after"] })).stdout).toBe("after\n");
});

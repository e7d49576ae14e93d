import { execFile, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { guestBinary } from "../../../src/sandbox/guest/binary.js";

const run = promisify(execFile);
let scratch: string;
beforeAll(() => {
  scratch = mkdtempSync(join(tmpdir(), "glovebox-test-"));
});
afterAll(() => rmSync(scratch, { recursive: true }));

test("a program begins for the process that asked, with its exit code", async () => {
  const { stdout } = await run(guestBinary(), ["exec-with-parent", String(process.pid), "0", "/bin/echo", "a b"]);
  expect(stdout).toBe("a b\n");
  const failing = run(guestBinary(), ["exec-with-parent", String(process.pid), "15", "/bin/sh", "-c", "exit 7"]);
  await expect(failing).rejects.toMatchObject({ code: 7 });
  const missing = run(guestBinary(), ["exec-with-parent", String(process.pid), "0", "/nonexistent/program"]);
  await expect(missing).rejects.toMatchObject({ code: 127, stderr: expect.stringContaining("/nonexistent/program") });
});

test("and not when that one is gone", async () => {
  const marker = join(scratch, "marker");
  const late = run(guestBinary(), ["exec-with-parent", String(process.ppid), "0", "/bin/touch", marker]);
  await expect(late).rejects.toMatchObject({ code: 125 });
  expect(existsSync(marker)).toBe(false);
});

test.each([
  [15, false],
  [0, true],
])("when that one is killed, signal %i decides whether the program goes on", async (signal, goesOn) => {
  const script = `${guestBinary()} exec-with-parent $$ ${signal} /bin/sleep 60 & echo $!; wait`;
  const parent = spawn("/bin/sh", ["-c", script], { stdio: ["ignore", "pipe", "ignore"] });
  const pid = Number(
    await new Promise((resolve) => parent.stdout.once("data", (data) => resolve(String(data).trim()))),
  );
  const isThere = (): boolean =>
    existsSync(`/proc/${pid}/stat`) && !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  await expect.poll(() => readFileSync(`/proc/${pid}/comm`, "utf8")).toBe("sleep\n");
  const gone = new Promise((resolve) => parent.once("exit", resolve));
  parent.kill("SIGKILL");
  await gone;
  if (goesOn) {
    expect(isThere()).toBe(true);
    process.kill(pid, "SIGKILL");
  }
  await expect.poll(isThere).toBe(false);
});

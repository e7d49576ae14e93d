import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, onTestFinished, test } from "vitest";
import { uniqueSeconds } from "../../../support/guest/plain-guest.js";
import { descendants, stillBelow } from "../../../support/processes/descendants.js";
import { processesWith } from "../../../support/processes/host-processes.js";
import { readQuietly } from "../../../support/processes/token-watch.js";

/** What the tests count processes with must not count those of another run. */
async function start(argv: readonly string[]): Promise<{ pid: number; kill(): boolean }> {
  const child = spawn(argv[0] as string, argv.slice(1), { stdio: "ignore" });
  onTestFinished(() => void child.kill("SIGKILL"));
  await once(child, "spawn");
  return { pid: child.pid ?? 0, kill: () => child.kill("SIGKILL") };
}

test("a marker that is only the beginning or the end of another's finds nothing", async () => {
  const marker = `place1-${process.pid}${uniqueSeconds().replace(".", "")}`;
  const { pid } = await start(["sh", "-c", "sleep 60; :", `/tmp/other/${marker}/repo`]);
  // The shell's child has the shell's arguments until it is the program.
  const isSleeping = (): boolean => descendants(pid).some((each) => readQuietly(`/proc/${each}/comm`) === "sleep\n");
  await expect.poll(isSleeping).toBe(true);
  expect(processesWith(marker).map((each) => each.pid)).toEqual([pid]);
  expect(processesWith(`/tmp/other/${marker}/`).map((each) => each.pid)).toEqual([pid]);
  expect(processesWith(marker.slice(0, -1))).toEqual([]);
  expect(processesWith(marker.slice(1))).toEqual([]);
  expect(processesWith(`${marker.split("-")[0]}-`).map((each) => each.pid)).toContain(pid);
});

test("a process below this one counts until it is gone, and one that ends is waited for", async () => {
  const before = new Set(descendants(process.pid));
  const { pid, kill } = await start(["sleep", uniqueSeconds()]);
  expect(descendants(process.pid).filter((each) => !before.has(each))).toEqual([pid]);
  kill();
  expect(await stillBelow(before)).toEqual([]);
});

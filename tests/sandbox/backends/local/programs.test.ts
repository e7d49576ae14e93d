// own process: it counts every program that its process starts
import type { ChildProcess } from "node:child_process";
import diagnostics from "node:diagnostics_channel";
import { expect, test } from "vitest";
import { createLocalSandbox } from "../../../../src/index.js";

// A large process takes tens of milliseconds to start a program.
test("opening and closing a sandbox starts one program in all", async () => {
  await (await createLocalSandbox()).teardown();
  const started: ChildProcess[] = [];
  const note = (message: unknown): void => {
    started.push((message as { process: ChildProcess }).process);
  };
  diagnostics.subscribe("child_process", note);
  try {
    const sandbox = await createLocalSandbox();
    await sandbox.exec("true");
    await sandbox.teardown();
  } finally {
    diagnostics.unsubscribe("child_process", note);
  }
  expect(started.map(({ spawnargs }) => spawnargs)).toHaveLength(1);
});

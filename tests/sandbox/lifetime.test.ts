import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { SandboxEvent } from "../../contracts/types.js";
import { readRecord, updateRecord } from "../../src/ledger/records.js";
import type { SandboxOptions } from "../../src/sandbox/types.js";
import { listSandboxes, openSandbox, reap } from "../../src/sandbox.js";
import { createScratch, type Scratch } from "../support/scratch.js";

let scratch: Scratch;
beforeAll(() => {
  scratch = createScratch();
});
afterAll(() => scratch.remove());

const HOUR = 3_600_000;
const open = (opts: SandboxOptions = {}): ReturnType<typeof openSandbox> => openSandbox({ backend: "local", ...opts });
const records = (): string[] => readdirSync(join(scratch.home, "sandboxes"));

async function keptUntil(ms: number): Promise<{ id: string; workDir: string }> {
  const sandbox = await open({ keep: true, ttl: HOUR });
  await sandbox.writeFile("file", "kept");
  await sandbox.teardown();
  await updateRecord(sandbox.id, { expiresAt: new Date(Date.now() + ms).toISOString() });
  return sandbox;
}

describe("a kept sandbox with a ttl", () => {
  test("is listed with its end, which reopening does not move, and which forks share", async () => {
    const before = Date.now();
    const sandbox = await open({ keep: true, ttl: HOUR, idleTimeout: HOUR });
    const { createdAt = "", expiresAt = "" } = (await listSandboxes())[0] ?? {};
    expect(Date.parse(expiresAt)).toBeGreaterThanOrEqual(before + HOUR);
    expect(Date.parse(expiresAt) - Date.parse(createdAt)).toBeLessThanOrEqual(HOUR);
    await sandbox.teardown();
    const again = await open({ id: sandbox.id });
    expect((await readRecord(sandbox.id))?.expiresAt).toBe(expiresAt);
    const fork = await again.fork();
    expect(await readRecord(fork.id)).toMatchObject({ expiresAt, rules: { options: { idleTimeout: HOUR } } });
    for (const each of [again, fork]) {
      await each.teardown();
      await updateRecord(each.id, { expiresAt: new Date(0).toISOString() });
    }
    expect((await reap()).removed.sort()).toEqual([sandbox.id, fork.id].sort());
    expect(records()).toEqual([]);
  });

  test("is removed by reap after its time, and never before it", async () => {
    const early = await keptUntil(60_000);
    const late = await keptUntil(-1);
    expect(await reap({ dryRun: true })).toMatchObject({ removed: [late.id], kept: [early.id] });
    expect(await reap()).toMatchObject({ removed: [late.id], kept: [early.id], failed: [] });
    expect([existsSync(late.workDir), existsSync(early.workDir)]).toEqual([false, true]);
    await updateRecord(early.id, { expiresAt: new Date(Date.now() - 1).toISOString() });
    await reap();
    expect(records()).toEqual([]);
  });

  test("can't be reopened after its time: it is removed instead", async () => {
    const { id, workDir } = await keptUntil(-1);
    await expect(open({ id })).rejects.toMatchObject({
      code: "not_found",
      message: expect.stringContaining("its ttl ended at") as string,
      hint: expect.stringContaining("does not extend") as string,
    });
    expect([existsSync(workDir), records()]).toEqual([false, []]);
  });

  test("that is open stays, whatever its record says, until its own process ends it", async () => {
    const { id } = await keptUntil(60_000);
    const sandbox = await open({ id });
    await updateRecord(id, { expiresAt: new Date(0).toISOString() });
    expect(await reap()).toMatchObject({ removed: [], kept: [id] });
    expect(await sandbox.readFile("file")).toBe("kept");
    await sandbox.teardown();
    await reap();
    expect(records()).toEqual([]);
  });

  test("that expires while it is open again is removed, and a process in it is ended", async () => {
    const { id, workDir } = await keptUntil(2_000);
    const events: SandboxEvent[] = [];
    const sandbox = await open({ id, onEvent: (event) => void events.push(event) });
    const child = await sandbox.spawn({ argv: ["sleep", "600"] });
    await expect(child.wait()).rejects.toMatchObject({
      code: "closed",
      message: expect.stringMatching(/ttl/) as string,
    });
    await sandbox.teardown();
    expect(events.at(-1)).toMatchObject({ type: "teardown", message: expect.stringMatching(/ttl/) as string });
    expect([existsSync(workDir), records()]).toEqual([false, []]);
  });
});

test("an idle sandbox that is not kept is removed, and a file call counts as use", async () => {
  let gone: (event: SandboxEvent) => void = () => undefined;
  const ended = new Promise<SandboxEvent>((resolve) => {
    gone = resolve;
  });
  const onEvent = (event: SandboxEvent): void => {
    if (event.type === "teardown") gone(event);
  };
  const sandbox = await open({ idleTimeout: 1_000, onEvent });
  const start = performance.now();
  let last = start;
  while (last - start < 1_500) {
    await sandbox.writeFile("file", "x");
    last = performance.now();
  }
  expect((await ended).message).toContain("idleTimeout");
  expect(performance.now() - last).toBeGreaterThanOrEqual(990);
  await expect(sandbox.readFile("file")).rejects.toMatchObject({ code: "closed" });
  expect(records()).toEqual([]);
});

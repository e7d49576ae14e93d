import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createStyle } from "../../src/cli/terminal/style.js";
import { createPlainReporter } from "../../src/cli/verbs/run-view/plain-reporter.js";
import { EventLog } from "../../src/harness/store/event-log.js";
import { NodeLogs } from "../../src/harness/store/node-logs.js";
import {
  createRunDirectory,
  findRunDirectory,
  isRun,
  listRunDirectories,
} from "../../src/harness/store/run-directory.js";
import { claimRun, isRunning, releaseRun } from "../../src/harness/store/run-owner.js";
import { type RunEvent, readEvents } from "../../src/harness.js";
import { openBeneath } from "../../src/util/beneath.js";
import { createRedactor } from "../../src/util/redact.js";
import { createScratch, type Scratch } from "../support/scratch.js";

let scratch: Scratch;
beforeEach(() => {
  scratch = createScratch();
});
afterEach(() => scratch.remove());

describe("the events of a run", () => {
  test("are numbered without a gap, also when the writer before was killed within a line", () => {
    const path = join(scratch.path, "events.jsonl");
    const first = new EventLog(openBeneath(scratch.path, []), "x");
    first.append({ type: "warning", message: "one" });
    first.append({ type: "warning", message: "two" });
    first.close();
    appendFileSync(path, '{"v":1,"seq":3,"type":"warn');
    expect(readEvents(path).map(({ seq }) => seq)).toEqual([1, 2]);
    const second = new EventLog(openBeneath(scratch.path, []), "x");
    second.append({ type: "warning", message: "three" });
    second.close();
    expect(readEvents(path)).toMatchObject([{ seq: 1 }, { seq: 2 }, { seq: 3, message: "three", runId: "x", v: 1 }]);
  });

  test("hold no secret at any depth", () => {
    const path = join(scratch.path, "events.jsonl");
    const log = new EventLog(openBeneath(scratch.path, []), "x", createRedactor({ secrets: ["hush-hush"] }));
    log.append({ type: "push.finished", result: { pushed: false, error: "no hush-hush please" } });
    log.append({
      type: "run.started",
      blueprint: "b",
      repo: "r",
      intent: "hush-hush",
      nodes: [{ id: "hush-hush", kind: "gate" }],
    });
    log.close();
    expect(readFileSync(path, "utf8")).not.toContain("hush-hush");
    expect(readEvents(path)[0]).toMatchObject({ result: { error: "no [REDACTED] please" } });
  });
});

describe("the logs of a node", () => {
  test("have all of it, while the events hold the beginning", async () => {
    const directory = await createRunDirectory("logs", join(scratch.path, "runs"));
    const logs = new NodeLogs(directory, ["a", "b"]);
    const output = (text: string): { room: number; path: string } =>
      logs.write({ nodeId: "b", stream: "stdout", bytes: Buffer.from(text) });
    expect(output("x".repeat(200 * 1024)).room).toBe(256 * 1024);
    expect(output("y".repeat(200 * 1024)).room).toBe(56 * 1024);
    expect(output("z")).toEqual({ room: 0, path: "nodes/2-b/stdout.log" });
    logs.close();
    expect(readFileSync(directory.at("nodes", "2-b", "stdout.log"))).toHaveLength(400 * 1024 + 1);
  });
});

describe("the directories of runs", () => {
  test("are found by their name from anywhere, and ignored by git", async () => {
    const folder = join(scratch.path, "repo", ".glovebox", "runs");
    const made = await createRunDirectory("one", folder);
    expect(readFileSync(join(folder, ".gitignore"), "utf8")).toBe("*\n");
    expect((await findRunDirectory("one")).path).toBe(made.path);
    expect([await isRun("one"), await isRun("two"), await isRun("../one")]).toEqual([true, false, false]);
    await expect(createRunDirectory("one", join(scratch.path, "elsewhere"))).rejects.toMatchObject({
      code: "conflict",
    });
    expect(existsSync(join(scratch.path, "elsewhere"))).toBe(false);
    expect((await listRunDirectories()).map(({ runId }) => runId)).toEqual(["one"]);
  });

  test("belong to one process at a time, and to nobody when it is gone", async () => {
    const directory = await createRunDirectory("owned", join(scratch.path, "runs"));
    await claimRun(directory);
    expect(await isRunning(directory)).toBe(true);
    await expect(claimRun(directory)).rejects.toMatchObject({ code: "conflict" });
    const owner = JSON.parse(readFileSync(directory.state("owner.json"), "utf8")) as { startTime: string };
    writeFileSync(directory.state("owner.json"), JSON.stringify({ ...owner, startTime: "1" }));
    expect(await isRunning(directory)).toBe(false);
    await claimRun(directory);
    releaseRun(directory);
    expect(await isRunning(directory)).toBe(false);
  });
});

test("plain lines say of a node that takes long that it still runs", async () => {
  const output = new PassThrough();
  const reporter = createPlainReporter(output, createStyle({}, {}), 20);
  const head = { v: 1 as const, seq: 1, ts: "", runId: "x" };
  const event: RunEvent = { ...head, type: "node.started", nodeId: "slow", name: "slow", kind: "command", attempt: 1 };
  await reporter.event?.(event);
  let text = "";
  for await (const chunk of output) {
    text += String(chunk);
    if (text.includes("still runs")) break;
  }
  reporter.stop();
  expect(text).toMatch(/^\d\d:\d\d:\d\d ▸ slow\n\d\d:\d\d:\d\d … slow still runs, for \d+ms\n/);
});

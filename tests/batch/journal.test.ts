import { appendFileSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Journal, readJournal } from "../../src/batch/journal.js";
import { encodeRecord, type JournalRecord } from "../../src/batch/journal-record.js";
import { resultLines } from "../../src/batch/result-lines.js";
import { expectRefused } from "../support/refused.js";
import { createScratch, type Scratch } from "../support/scratch.js";

const HEADER: JournalRecord = { t: "batch", version: 1, id: "b1", tasks: "d", count: 2, createdAt: "2026-01-01" };
const planned = (task: string): JournalRecord => ({ t: "planned", task, digest: "x" });
const started = (task: string, attempt = 1): JournalRecord => ({ t: "started", task, attempt, resource: "r" });
const finished = (task: string, end: number): JournalRecord => ({
  t: "finished",
  task,
  attempt: 1,
  outcome: "passed",
  ms: 5,
  end,
});

let scratch: Scratch;
let path: string;
let results: string;
beforeEach(() => {
  scratch = createScratch();
  path = join(scratch.path, "journal.jsonl");
  results = join(scratch.path, "results.jsonl");
});
afterEach(() => scratch.remove());

async function writeTwo(): Promise<void> {
  const journal = await Journal.open(path, results);
  await journal.add(HEADER, planned("a"), planned("ü"), started("a"), started("ü"));
  await journal.addResult({ taskId: "a" }, (end) => finished("a", end));
  await journal.addResult({ taskId: "ü" }, (end) => finished("ü", end));
  await journal.close();
}

describe("a journal", () => {
  test("cut at any byte of its last record goes on with everything before it, and drops the result that it acknowledged", async () => {
    await writeTwo();
    const whole = readFileSync(path);
    const both = readFileSync(results);
    const last = whole.lastIndexOf(0x0a, whole.length - 2) + 1;
    expect(whole.length - last).toBeGreaterThan(50);
    for (let end = last; end < whole.length; end++) {
      writeFileSync(path, whole.subarray(0, end));
      writeFileSync(results, both);
      const journal = await Journal.open(path, results);
      expect(journal.state.tasks.get("a")).toMatchObject({ outcome: "passed", attempts: 1 });
      expect(journal.state.tasks.get("ü")).toMatchObject({ isStarted: true, attempts: 1 });
      expect(journal.state.tasks.get("ü")).not.toHaveProperty("outcome");
      expect(readFileSync(results, "utf8")).toBe('{"taskId":"a"}\n');
      await journal.addResult({ taskId: "ü" }, (at) => finished("ü", at));
      await journal.close();
      expect(readFileSync(path)).toEqual(whole);
      expect(readFileSync(results)).toEqual(both);
    }
  });

  test("cut at any byte of its header is a new one", async () => {
    const header = Buffer.from(encodeRecord(HEADER));
    for (let end = 0; end < header.length; end++) {
      writeFileSync(path, header.subarray(0, end));
      const journal = await Journal.open(path, results);
      expect(journal.state.header).toBeUndefined();
      await journal.close();
      expect(readFileSync(path, "utf8")).toBe("");
    }
  });

  test("that was damaged before its last record is refused, and not touched", async () => {
    await writeTwo();
    const whole = readFileSync(path, "utf8");
    const lines = whole.split("\n");
    const changes: [number, string, string][] = [
      [1, '"count":2', '"count":3'],
      [2, '"task":"a"', '"task":"b"'],
      [4, '"t":"started"', '"t":"ended"'],
      [6, '"end":', '"end":1'],
    ];
    for (const [line, from, to] of changes) {
      const text = lines.map((each, at) => (at === line - 1 ? each.replace(from, to) : each)).join("\n");
      expect(text).not.toBe(whole);
      writeFileSync(path, text);
      await expectRefused(Journal.open(path, results), "tampered", path, `line ${line}`);
      expect(readFileSync(path, "utf8")).toBe(text);
    }
  });

  test("whose last records were written together, and lost in any part in a power loss, goes on with what was there before", async () => {
    await writeTwo();
    const before = readFileSync(path);
    const journal = await Journal.open(path, results);
    await journal.addAll(Array.from({ length: 60 }, (_, at) => planned(`new${at}`)));
    await journal.close();
    const whole = readFileSync(path);
    const size = 512;
    for (let lost = before.length; lost < whole.length; lost += size) {
      const damaged = Buffer.from(whole);
      damaged.fill(0, lost, Math.min(lost + size, whole.length));
      writeFileSync(path, damaged);
      const opened = await Journal.open(path, results);
      expect(opened.state.tasks.get("ü")).toMatchObject({ outcome: "passed" });
      const known = opened.state.tasks.size;
      expect(known).toBeLessThan(62);
      await opened.add(planned("after"));
      await opened.close();
      expect((await readJournal(path)).tasks.size).toBe(known + 1);
    }
    const damaged = Buffer.from(whole);
    damaged.fill(0, before.length - 80, before.length - 40);
    writeFileSync(path, damaged);
    await expectRefused(Journal.open(path, results), "tampered", "line 7");
  });

  test("of a newer version is refused", async () => {
    const text = `${JSON.stringify({ t: "batch", version: 2, anything: true })}\nsomething else\n`;
    writeFileSync(path, text);
    await expectRefused(Journal.open(path, results), "unsupported", "format 2", "knows 1");
    await expectRefused(readJournal(path), "unsupported", "format 2");
    expect(readFileSync(path, "utf8")).toBe(text);
  });

  test("that is somebody else's file is refused, and stays as it is", async () => {
    writeFileSync(path, "milk\neggs\n");
    await expectRefused(Journal.open(path, results), "tampered", "line 1");
    expect(readFileSync(path, "utf8")).toBe("milk\neggs\n");
  });

  test("whose results were cut is refused", async () => {
    await writeTwo();
    writeFileSync(results, '{"taskId":"a"}\n');
    await expectRefused(Journal.open(path, results), "tampered", "shorter");
  });

  test("writes what is added at once together, in its order", async () => {
    const journal = await Journal.open(path, results);
    await journal.add(HEADER);
    await Promise.all(
      Array.from({ length: 500 }, async (_, at) => {
        await journal.add(planned(`t${at}`));
        await journal.addResult({ taskId: `t${at}` }, (end) => finished(`t${at}`, end));
      }),
    );
    await journal.close();
    const { tasks, resultsEnd } = await readJournal(path);
    expect([...tasks.values()].filter(({ outcome }) => outcome === "passed")).toHaveLength(500);
    expect(resultsEnd).toBe(readFileSync(results).length);
    expect(readFileSync(results, "utf8").trim().split("\n")).toHaveLength(500);
  });

  test("has one line for each result, whatever a reader takes for the end of a line", async () => {
    const written = ["\u2028", "\u2029", "\u0085", "\r", "\v\f", "\n", "ü€😀"].map((text) => ({
      taskId: "a",
      stdout: text,
    }));
    const journal = await Journal.open(path, results);
    await journal.add(HEADER, planned("a"));
    for (const result of written) await journal.addResult(result, (end) => finished("a", end));
    const { resultsEnd } = journal.state;
    await journal.close();
    const lines = readFileSync(results, "utf8").split(/[\n\v\f\r\u0085\u2028\u2029]/);
    expect(lines.filter(Boolean).map((line) => JSON.parse(line) as unknown)).toEqual(written);
    const read: unknown[] = [];
    for await (const result of resultLines(results, resultsEnd)) read.push(result);
    expect(read).toEqual(written);
  });

  test("is read though a result has other ends of lines in it, and is larger than what is read at once", async () => {
    const written = [{ stdout: "a\u2028b" }, { stdout: "€".repeat(100_000) }, { stdout: "" }];
    writeFileSync(results, written.map((result) => `${JSON.stringify(result)}\n`).join(""));
    const read: unknown[] = [];
    for await (const result of resultLines(results, readFileSync(results).length)) read.push(result);
    expect(read).toEqual(written);
  });

  test("is not written through a link", async () => {
    const target = join(scratch.path, "profile");
    writeFileSync(target, "");
    for (const link of [path, results]) {
      symlinkSync(target, link);
      await expectRefused(Journal.open(path, results), "permission_denied", link, "is a link");
      mkdirSync(join(scratch.path, "used"), { recursive: true });
      path = join(scratch.path, "used", "journal.jsonl");
    }
    expect(readFileSync(target, "utf8")).toBe("");
  });

  test("shows a reader what is acknowledged while a driver writes the next record", async () => {
    await writeTwo();
    appendFileSync(path, encodeRecord(started("a", 2)).slice(0, 20));
    expect((await readJournal(path)).tasks.get("a")).toMatchObject({ outcome: "passed", attempts: 1 });
  });
});

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type BatchNote, readBatch, readBatchPage, readResults, runBatch } from "../../src/batch.js";
import type { SimulatedService } from "../fakes/simulated-service.js";
import {
  type BatchPlace,
  createBatchPlace,
  expectNothingLeft,
  idsOf,
  manyTasks,
  runAll,
  serve,
} from "./batch-place.js";

let place: BatchPlace;
beforeEach(() => {
  place = createBatchPlace();
});
afterEach(() => place.remove());

describe("a batch", () => {
  test("runs each task once, and a second call runs none of them again", async () => {
    const service = serve();
    const tasks = [...manyTasks(40), { id: "bad", run: "exit 3" }];
    const options = { tasks, out: place.out, backend: service.name };
    const { results, run } = await runAll(options);
    expect(idsOf(results)).toEqual(idsOf(tasks.map(({ id }) => ({ taskId: id }))));
    expect(results.find(({ taskId }) => taskId === "bad")).toMatchObject({ outcome: "failed", exitCode: 3 });
    expect(results.find(({ taskId }) => taskId === "t7")).toMatchObject({
      outcome: "passed",
      stdout: "t7\n",
      attempt: 1,
    });
    expect(run.progress).toMatchObject({ total: 41, done: 41, passed: 40, failed: 1, running: 0, waiting: 0 });
    expect(place.lines("results.jsonl")).toEqual(results);
    await expectNothingLeft(service);
    const again = await runAll(options);
    expect(again.results).toEqual([]);
    expect(again.run.progress).toMatchObject({ done: 41, passed: 40, failed: 1 });
    expect(service.commands).toHaveLength(41);
    await expectNothingLeft(service);
  });

  test("stops when its reader leaves, and goes on from there", async () => {
    const service = serve({ latency: { exec: 5 } });
    const options = { tasks: manyTasks(60), out: place.out, backend: service.name, concurrency: 4 };
    const first: string[] = [];
    for await (const { taskId } of runBatch(options)) {
      first.push(taskId);
      if (first.length === 10) break;
    }
    await expectNothingLeft(service);
    await runAll(options);
    const all = place.lines("results.jsonl").map(({ taskId }) => String(taskId));
    expect(new Set(all).size).toBe(60);
    expect(all).toHaveLength(60);
    expect(all.slice(0, 10)).toEqual(first);
    const attempts = place.lines("journal.jsonl").filter(({ t }) => t === "started").length;
    // An attempt may be cut off before its command is sent, never after without a record.
    expect(attempts).toBeGreaterThanOrEqual(service.commands.length);
    expect(service.commands.length).toBeGreaterThanOrEqual(60);
    await expectNothingLeft(service);
  });

  test("warns when it goes on with sandboxes of another kind", async () => {
    const service = serve();
    const options = { tasks: manyTasks(4), out: place.out, backend: service.name };
    for await (const _ of runBatch({ ...options, concurrency: 1 })) break;
    const notes: BatchNote[] = [];
    const onNote = (note: BatchNote): number => notes.push(note);
    const more = { sandbox: { env: { MODE: "fast" } } };
    await runAll({ ...options, ...more, onNote });
    const message = "the results that are there were made with another env.MODE; they stay as they are";
    expect(notes).toEqual([{ type: "warning", message }]);
    await runAll({ ...options, ...more, onNote });
    expect(notes).toHaveLength(1);
  });

  test("starts no more tasks while nobody takes the results", async () => {
    const service = serve();
    const results = runBatch({ tasks: manyTasks(320), out: place.out, backend: service.name, concurrency: 20 });
    let taken = 0;
    for await (const _ of results) {
      taken += 1;
      if (taken !== 1) continue;
      await expect.poll(() => place.lines("results.jsonl").length).toBeGreaterThan(255);
      await expect.poll(() => service.machines.length).toBe(0);
      expect(service.commands.length).toBeLessThan(300);
    }
    expect(taken).toBe(320);
  });

  test("runs the second driver's tasks only when the first has ended", async () => {
    const service = serve({ latency: { exec: 30 } });
    const options = { tasks: manyTasks(4), out: place.out, backend: service.name, concurrency: 1 };
    for await (const { taskId } of runBatch(options)) {
      if (taskId !== "t1") continue;
      await expect(runAll(options)).rejects.toMatchObject({
        code: "conflict",
        message: expect.stringContaining(`${process.pid}`),
      });
      expect(await readBatch(place.out)).toMatchObject({ pid: process.pid, done: 1, total: 4 });
    }
    expect(await readBatch(place.out)).toMatchObject({ done: 4, passed: 4 });
    expect(await readBatch(place.out)).not.toHaveProperty("pid");
    expect(service.commands).toHaveLength(4);
  });

  test("refuses the journal of another batch, and runs what has changed if it is asked to", async () => {
    const service = serve();
    const options = { tasks: manyTasks(3), out: place.out, backend: service.name };
    await runAll(options);
    const other = { ...options, tasks: [...manyTasks(2), { id: "t3", run: "true # and more" }] };
    await expect(runAll(other)).rejects.toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining("another batch"),
    });
    await expect(runAll({ ...options, shard: { index: 1, count: 2 } })).rejects.toThrow(
      "another batch: it is of no shard",
    );
    expect(service.commands).toHaveLength(3);
    const { results } = await runAll({ ...other, ifChanged: "run" });
    expect(results).toMatchObject([{ taskId: "t3", outcome: "passed", attempt: 2 }]);
    const latest: string[] = [];
    for await (const { taskId, attempt } of readResults(place.out)) latest.push(`${taskId} ${attempt}`);
    expect(latest.sort()).toEqual(["t1 1", "t2 1", "t3 2"]);
  });

  test("runs every task in one of its shards", async () => {
    const service = serve();
    const outs = [1, 2, 3].map((index) => `${place.out}-${index}`);
    for (const [at, out] of outs.entries()) {
      await runAll({ tasks: manyTasks(10), out, backend: service.name, shard: { index: at + 1, count: 3 } });
    }
    const ids: { taskId: string }[] = [];
    for await (const result of readResults(...outs)) ids.push(result);
    expect(idsOf(ids)).toEqual(
      manyTasks(10)
        .map(({ id }) => id)
        .sort(),
    );
    expect(service.commands).toHaveLength(10);
    await expect(async () => {
      for await (const _ of readResults(outs[0] ?? "", outs[0] ?? ""));
    }).rejects.toMatchObject({ code: "conflict" });
  });

  test("starts nothing more once it has cost enough, and goes on with more money", async () => {
    const service = serve({ latency: { exec: 36 } });
    // A command of 36 ms costs 0.01 dollars.
    const options = { tasks: manyTasks(12), out: place.out, backend: service.name, pricePerHour: 1000, concurrency: 2 };
    const { run } = await runAll({ ...options, maxCost: 0.08 });
    expect(run.stopped).toBe("max-cost");
    const { done, costUsd = 0 } = run.progress;
    expect(done).toBeGreaterThan(0);
    expect(done).toBeLessThan(9);
    expect(costUsd).toBeGreaterThan(0);
    const rest = await runAll({ ...options, maxCost: 1000 });
    expect(rest.run.stopped).toBeUndefined();
    expect(rest.run.progress).toMatchObject({ done: 12 });
    expect(() => runBatch({ tasks: manyTasks(1), out: place.out, maxCost: 1 })).toThrow("pricePerHour");
  });

  test("opens the first sandbox of each image alone, so that it is fetched once", async () => {
    const begun: number[] = [];
    const service: SimulatedService & { name: string } = serve({
      image: "usual",
      latency: { create: 100 },
      // How many others were asked for by the time that this one is ready: they would fetch the image, too.
      onCreate: () => void begun.push(service.requests["create"] ?? 0),
    });
    const tasks = manyTasks(12).map((task, at) => (at % 2 === 0 ? task : { ...task, image: "other" }));
    await runAll({ tasks, out: place.out, backend: service.name, concurrency: 12 });
    expect(begun[0]).toBe(2);
    expect(service.requests["create"]).toBe(12);
    expect(service.commands).toHaveLength(12);
  });

  test("opens one at a time on this machine while there is no memory for more", async () => {
    const service = serve({ runsHere: true, latency: { exec: 2 } });
    const limits = { memory: 2 ** 50 };
    const options = { tasks: manyTasks(8), out: place.out, backend: service.name, sandbox: { limits } };
    await runAll(options);
    expect(service.most).toBe(1);
    await runAll({ ...options, out: `${place.out}-2`, concurrency: 8 });
    expect(service.most).toBe(1);
    await runAll({ ...options, out: `${place.out}-3`, concurrency: 8, sandbox: {} });
    expect(service.most).toBeGreaterThan(1);
  });

  test("has a row for each task in its page, and nothing of what they wrote is markup", async () => {
    const service = serve();
    await runAll({ tasks: [{ id: "<b>x</b>", run: "exit 4" }], out: place.out, backend: service.name });
    const page = await readBatchPage(place.out);
    expect(page).toContain("&lt;b&gt;x&lt;/b&gt;");
    expect(page).not.toContain("<b>x</b>");
    expect(page).toContain("exit code 4");
  });

  test("shows no secrets of its variables in its page", async () => {
    const service = serve();
    const secrets = { MY_TOKEN: "of-the-batch-1", OTHER_KEY: "of-the-task-22" };
    const { MY_TOKEN, OTHER_KEY } = secrets;
    const tasks = [{ id: `${MY_TOKEN} ${OTHER_KEY}`, run: "exit 4", env: { OTHER_KEY } }];
    await runAll({ tasks, out: place.out, backend: service.name, sandbox: { env: { MY_TOKEN } } });
    expect(place.lines("results.jsonl")).toMatchObject([{ stdout: `${MY_TOKEN} ${OTHER_KEY}\n` }]);
    const page = readFileSync(join(place.out, "report.html"), "utf8");
    const output = page.slice(page.indexOf('<pre class="out">'), page.indexOf("</pre>"));
    expect(output).toContain("[REDACTED:MY_TOKEN] [REDACTED:OTHER_KEY]");
    expect(await readBatchPage(place.out)).toContain("[REDACTED:OTHER_KEY]");
  });

  test("starts no more tasks while what nobody has taken is large", async () => {
    const service = serve();
    let taken = 0;
    // A command of this service prints as much as it is told to.
    const tasks = manyTasks(40).map((task) => ({ ...task, run: "print 1000000" }));
    const options = { tasks, out: place.out, backend: service.name, concurrency: 2, maxOutput: 1 << 20 };
    for await (const _ of runBatch(options)) {
      taken += 1;
      if (taken !== 1) continue;
      await expect.poll(() => place.lines("results.jsonl").length).toBeGreaterThan(16);
      await expect.poll(() => service.machines.length).toBe(0);
      expect(service.commands.length).toBeLessThan(25);
    }
    expect(taken).toBe(40);
  });

  test.each([
    [
      "a duplicate id",
      {
        tasks: [
          { id: "a", run: "x" },
          { id: "a", run: "x" },
        ],
      },
      "tasks[1].id",
    ],
    ["an unknown field", { tasks: [{ id: "a", rnu: "x" }] }, '"rnu"'],
    ["nothing to run", { tasks: [{ id: "a" }] }, "nothing to run"],
    ["no task", { tasks: [] }, "at least one task"],
    ["an id with a line end", { tasks: [{ id: "a\nb", run: "x" }] }, "control characters"],
    ["an id that turns its direction", { tasks: [{ id: "\u202egnp.exe", run: "x" }] }, "control characters"],
    ["a name for all sandboxes", { tasks: manyTasks(1), sandbox: { name: "x" } }, "sandbox.name"],
    ["a shard that is none", { tasks: manyTasks(1), shard: { index: 3, count: 2 } }, "3/2"],
  ])("refuses %s", (_, options, words) => {
    expect(() => runBatch({ out: place.out, ...options } as never)).toThrow(words);
  });
});

import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import { createSandboxManager, type SandboxManager, type Task, type TaskEvent } from "../../src/tasks.js";
import { describeOwnEngine } from "../support/docker/own-engine.js";
import { askEngine, batchCensus, box, taskOf } from "../support/docker/task-place.js";
import { expectRefused } from "../support/refused.js";

const MIB = 1 << 20;
const LOST = /^(unavailable|backend_lost)$/;
const store = box("store", { command: "echo up; exec sleep 600", waitFor: { log: "up" } });

function recording(): { manager: SandboxManager; told(type: TaskEvent["type"]): string[] } {
  const events: TaskEvent[] = [];
  const manager = createSandboxManager({ onEvent: (event) => void events.push(event) });
  return { manager, told: (type) => events.filter((event) => event.type === type).map(({ message }) => message) };
}

/** Waits until a command runs that would go on for minutes; gives what asks for its end. */
async function underWay(manager: SandboxManager, id: string): Promise<() => Promise<unknown>> {
  let call: Promise<unknown> = Promise.resolve();
  await new Promise<void>((resolve, reject) => {
    call = manager.exec(id, "echo up; exec sleep 600", { onStdout: () => resolve() });
    call.catch(reject);
  });
  return () => call;
}

/** Names what takes too long, which the limit of a test does not. */
async function inTime<T>(what: string, work: Promise<T>): Promise<T> {
  const late = delay(60_000, undefined, { ref: false }).then(() => Promise.reject(new Error(`${what} does not end`)));
  return await Promise.race([work, late]);
}

const db = ({ state }: Task): string => state.serviceContainers["store"] ?? "";

/** A set-up works, and all of it goes. */
async function expectWorking(): Promise<void> {
  const { manager } = recording();
  const batch = await manager.setupBatch([]);
  const task = await batch.setupTask(taskOf("next", [store]));
  expect(await manager.exec(task.state.agentContainerId, "echo again")).toMatchObject({ stdout: "again\n" });
  await batch.teardown();
  expect(await batchCensus(batch.batchId)).toEqual([]);
}

describeOwnEngine(
  "a task when the engine fails",
  (engine) => {
    test("a container that somebody else removed is lost; the others go on, and the rest goes without a word", async () => {
      const { manager, told } = recording();
      const batch = await manager.setupBatch([]);
      const task = await batch.setupTask(taskOf("removed", [store]));
      const call = await underWay(manager, db(task));
      await askEngine("DELETE", `/containers/${db(task)}`, { force: true });
      await expectRefused(call(), "backend_lost");
      await expectRefused(manager.exec(db(task), "true"), "backend_lost");
      expect(task.status("store")).toEqual({ running: false, logs: "up\n" });
      expect(await manager.exec(task.state.agentContainerId, "echo on")).toMatchObject({ exitCode: 0, stdout: "on\n" });
      const before = await batchCensus(batch.batchId);
      await expect(manager.cloneSandboxState(task.state)).rejects.toMatchObject({
        code: expect.stringMatching(/^(backend_lost|not_found)$/),
      });
      expect(await batchCensus(batch.batchId)).toEqual(before);
      await task.teardown();
      expect(await batchCensus(batch.batchId)).toEqual([]);
      expect([told("leak"), told("command-exit")]).toEqual([[], []]);
      await batch.teardown();
    });

    test("a full disk is no_space for a clone, which leaves nothing, and the task goes on", async () => {
      const { manager } = recording();
      const batch = await manager.setupBatch([]);
      const task = await batch.setupTask(taskOf("full", [store]));
      const { agentContainerId } = task.state;
      const filled = await manager.exec(agentContainerId, "dd if=/dev/zero of=/big bs=1M count=200");
      expect([filled.exitCode, filled.stderr]).toEqual([1, expect.stringContaining("No space left on device")]);
      const before = await batchCensus(batch.batchId);
      await expectRefused(manager.cloneSandboxState(task.state), "no_space");
      await expectRefused(batch.setupTask(taskOf("another", [store])), "no_space");
      expect(await batchCensus(batch.batchId)).toEqual(before);
      await manager.exec(agentContainerId, "rm /big");
      const clone = await manager.cloneSandboxState(task.state);
      expect(await manager.exec(clone.state.agentContainerId, "ls /big")).toMatchObject({ exitCode: 1 });
      await batch.teardown();
      expect(await batchCensus(batch.batchId)).toEqual([]);
    });

    test("an engine that stands still: deadlines hold, an aborted set-up leaves nothing, teardown is tried again", async () => {
      const { manager } = recording();
      const batch = await manager.setupBatch([]);
      const task = await batch.setupTask(taskOf("still", [store]));
      const aborting = new AbortController();
      const setup = await engine.stopped(async () => {
        const exec = await manager.exec(task.state.agentContainerId, "true", { timeout: 1_000 }).then(
          ({ timedOut }) => (timedOut ? "timed out" : "a result"),
          ({ code }: { code: string }) => code,
        );
        expect(["timed out", "unavailable", "backend_lost"]).toContain(exec);
        const begun = batch.setupTask(taskOf("late", [store]), { signal: aborting.signal });
        begun.catch(() => undefined);
        setTimeout(() => aborting.abort(), 300);
        await new Promise((resolve) => aborting.signal.addEventListener("abort", resolve));
        return { begun };
      });
      await expectRefused(setup.begun, "aborted");
      await batch.teardown();
      expect(await batchCensus(batch.batchId)).toEqual([]);
      await expectWorking();
    });

    test("an engine that is killed in the middle of a command and of a set-up: no exit code is made up, all is taken away once it is back", async () => {
      const { manager, told } = recording();
      const batch = await manager.setupBatch([]);
      const task = await batch.setupTask(taskOf("killed", [store]));
      const call = await underWay(manager, task.state.agentContainerId);
      const setup = batch.setupTask(taskOf("half", [store, box("more")]));
      setup.catch(() => undefined);
      await expect.poll(() => batchCensus(batch.batchId), { interval: 5 }).not.toHaveLength(3);
      const { back } = await engine.kill();
      const isLost = { code: expect.stringMatching(LOST) };
      await expect(inTime("the command", call())).rejects.toMatchObject({ code: "backend_lost" });
      await expect(inTime("a command", manager.exec(db(task), "true"))).rejects.toMatchObject(isLost);
      await expect(inTime("the set-up", setup)).rejects.toMatchObject(isLost);
      await expect(inTime("a clone", manager.cloneSandboxState(task.state))).rejects.toMatchObject(isLost);
      expect(task.status("store")).toEqual({ running: false, logs: "up\n" });
      await inTime("the teardown of the task", task.teardown());
      await back;
      await inTime("the teardown of the batch", batch.teardown());
      expect(told("command-exit")).toEqual([]);
      // An engine that comes back removes some containers itself, and lists them without a name until it has.
      await expect.poll(() => batchCensus(batch.batchId)).toEqual([]);
      await expectWorking();
    });
  },
  96 * MIB,
);

import { expect, test } from "vitest";
import { createSandboxManager, managerNames, registerManager, type SandboxManager } from "../../src/tasks.js";
import { expectRefused } from "../support/refused.js";

const stub = (log: unknown[]): SandboxManager => ({
  setupBatch: async (tasks) => {
    log.push(["setupBatch", tasks]);
    return {
      batchId: "b",
      setupTask: async () => Promise.reject(new Error("none")),
      teardown: async () => undefined,
      [Symbol.asyncDispose]: async () => undefined,
    };
  },
  setupTask: async () => Promise.reject(new Error("no task")),
  exec: async (id) => Promise.reject(new Error(`no ${id}`)),
  cloneSandboxState: async () => Promise.reject(new Error("no clone")),
});

test("[S2-DOC-custom-manager] a manager of one's own is loaded when it is first used, once, with its options", async () => {
  const log: unknown[] = [];
  // Other files of the process may have registered theirs.
  const before = managerNames();
  expect(before).toContain("docker");
  registerManager("stub", async () => {
    log.push("loaded");
    return {
      createManager: (opts) => {
        log.push(opts);
        return stub(log);
      },
    };
  });
  expect(managerNames()).toEqual([...before, "stub"]);
  const manager = createSandboxManager({ backend: "stub", batchIdPrefix: "mine" });
  expect(log).toEqual([]);
  expect((await manager.setupBatch([])).batchId).toBe("b");
  await expect(manager.exec("7", "true")).rejects.toThrow("no 7");
  await expect(manager.setupTask({} as never)).rejects.toThrow("no task");
  await expect(manager.cloneSandboxState({} as never)).rejects.toThrow("no clone");
  expect(log).toEqual(["loaded", { batchIdPrefix: "mine" }, ["setupBatch", []]]);
});

test("names that are taken, wrong or unknown are refused", async () => {
  const load = async (): Promise<never> => Promise.reject(new Error("never loaded"));
  const attempt = async (work: () => unknown): Promise<unknown> => work();
  await expectRefused(
    attempt(() => registerManager("docker", load)),
    "conflict",
    "docker",
  );
  await expectRefused(
    attempt(() => registerManager("../x", load)),
    "invalid_argument",
    "name",
  );
  await expectRefused(
    attempt(() => registerManager("x", "y" as never)),
    "invalid_argument",
    "load",
  );
  await expectRefused(
    attempt(() => createSandboxManager({ backend: "dokcer" })),
    "invalid_argument",
    "dokcer",
    "docker",
  );
});

test.each([
  [{ batchIdPrefix: "../x" }, "batchIdPrefix"],
  [{ concurrency: 0 }, "concurrency"],
  [{ networkEnabled: "yes" }, "networkEnabled"],
  [{ verifyOnly: 1 }, "verifyOnly"],
  [{ onEvent: "log" }, "onEvent"],
  [{ docker: { hots: "x" } }, "hots"],
  [{ netwrokEnabled: true }, "netwrokEnabled"],
])("the options %j of a manager are refused at once", (opts, words) => {
  expect(() => createSandboxManager(opts as never)).toThrow(words);
});

test("a manager that is none is refused", async () => {
  registerManager("hollow", async () => ({ createManager: () => ({}) as never }));
  await expectRefused(
    createSandboxManager({ backend: "hollow" }).setupBatch([]),
    "invalid_argument",
    "hollow",
    "setupBatch",
  );
});

test("an engine that does not run is unavailable, with the line that starts it", async () => {
  const host = "unix:///nowhere/docker.sock";
  const failing = createSandboxManager({ docker: { host } }).setupBatch([]);
  await expect(failing).rejects.toMatchObject({
    code: "unavailable",
    hint: expect.stringContaining("systemctl start docker"),
  });
});

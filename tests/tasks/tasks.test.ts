import { expect, test } from "vitest";
import { SandboxError } from "../../contracts/errors.js";
import { BUSYBOX } from "../support/docker/engine.js";
import { askEngine, batchCensus, box, describeTasks, taskOf } from "../support/docker/task-place.js";
import { expectRefused } from "../support/refused.js";

const web = box("web", {
  hostname: "www",
  command: "mkdir /srv; echo served > /srv/page; echo starting; exec httpd -f -p 80 -h /srv",
  waitFor: { port: 80 },
});

describeTasks("a task", [BUSYBOX], (place) => {
  test.concurrent("[S2-DOC-two-levels] [S2-DOC-default-command] lives in a batch, stays without a command, and is gone with it", async () => {
    const manager = place.manager();
    const setup = taskOf("one");
    const batch = await manager.setupBatch([setup]);
    const task = await manager.setupTask(setup);
    expect(await manager.exec(task.state.agentContainerId, ["echo", "hello"])).toMatchObject({
      exitCode: 0,
      stdout: "hello\n",
    });
    expect(task.state).toEqual({
      taskId: "one",
      agentContainerId: expect.stringMatching(/^[0-9a-f]{64}$/),
      serviceContainers: {},
      executionId: expect.stringMatching(/^[0-9a-f]{32}$/),
    });
    expect(Object.isFrozen(task.state)).toBe(true);
    expect(await batchCensus(batch.batchId)).toHaveLength(1);
    await batch.teardown();
    expect(await batchCensus(batch.batchId)).toEqual([]);
    await expectRefused(manager.exec(task.state.agentContainerId, "true"), "closed", "outside of a batch");
  });

  test.concurrent("outside of a batch every call says so", async () => {
    const manager = place.manager();
    const state = { taskId: "a", agentContainerId: "0", serviceContainers: {}, executionId: "0" };
    await expectRefused(manager.setupTask(taskOf("one")), "closed", "setupTask", "outside of a batch");
    await expectRefused(manager.exec("0", "true"), "closed", "exec", "outside of a batch");
    await expectRefused(manager.cloneSandboxState(state), "closed", "cloneSandboxState", "outside of a batch");
  });

  test.concurrent("[S2-DOC-exec] exec takes a script or arguments, stdin, a directory, variables, a user, a deadline and a shell", async () => {
    const manager = place.manager();
    await using batch = await manager.setupBatch([]);
    const task = await batch.setupTask(taskOf("exec", [], { environment: { COLOUR: "red" } }));
    const { agentContainerId: id } = task.state;
    const stdout = async (...args: Parameters<typeof manager.exec>): Promise<string> =>
      (await manager.exec(...args)).stdout;
    expect(await stdout(id, "echo $COLOUR | tr a-z A-Z")).toBe("RED\n");
    expect(await stdout(id, ["echo", "hello; rm -rf /", "$COLOUR"])).toBe("hello; rm -rf / $COLOUR\n");
    expect(await stdout(id, ["echo", "it's $COLOUR"], { shellPath: "/bin/ash" })).toBe("it's $COLOUR\n");
    expect(await stdout(id, "readlink /proc/$$/exe; echo $0", { shellPath: "/bin/ash" })).toMatch(/\/bin\/ash\n$/);
    expect(await stdout(id, ["cat"], { stdin: "a\n'b'\n" })).toBe("a\n'b'\n");
    expect(await stdout(id, ["wc", "-c"], { stdin: new Uint8Array(10_000) })).toBe("10000\n");
    expect(await stdout(id, ["cat"], { stdin: "" })).toBe("");
    expect(await stdout(id, ["pwd"], { cwd: "/tmp" })).toBe("/tmp\n");
    expect(await stdout(id, "echo $COLOUR $MORE", { env: { MORE: "and blue" } })).toBe("red and blue\n");
    expect(await stdout(id, "id -un; echo $HOME", { user: "user" })).toBe("user\n/home/user\n");
    const late = await manager.exec(id, "echo so far; sleep 60", { timeout: 3_000 });
    expect(late).toMatchObject({ timedOut: true, exitCode: 137, stdout: "so far\n" });
    expect(await stdout(id, "pgrep sleep || echo none")).toBe("none\n");
    await expectRefused(manager.exec(id, ""), "invalid_argument", "cmd");
    await expectRefused(manager.exec("../x", "true"), "not_found", "../x");
  });

  test.concurrent("[S2-DOC-dns] [S2-DOC-own-network] the agent reaches its services by their host names, in a network of the task's own", async () => {
    const manager = place.manager();
    await using batch = await manager.setupBatch([]);
    const two = await Promise.all([1, 2].map((n) => batch.setupTask(taskOf(`web-${n}`, [web]))));
    for (const task of two) {
      const got = await manager.exec(task.state.agentContainerId, ["wget", "-qO-", "http://www/page"], {
        timeout: 10_000,
      });
      expect(got).toMatchObject({ exitCode: 0, stdout: "served\n" });
      expect(task.status("web")).toMatchObject({ running: true, logs: "starting\n" });
    }
    expect(two[0]?.state.networkId).not.toBe(two[1]?.state.networkId);
    expect(() => two[0]?.status("db")).toThrow(SandboxError);
  });

  test.concurrent("[S2-DOC-naming] names are made of batch, execution, container, task and something unique, and are safe", async () => {
    const manager = place.manager({ batchIdPrefix: "mine" });
    await using batch = await manager.setupBatch([]);
    const task = await batch.setupTask(taskOf("org/repo:42 ü", [box("db_1.x", { command: "sleep 60" })]));
    const names = (await batchCensus(batch.batchId)).map((line) => line.replace(/^\w+ \/?/, ""));
    const head = `${batch.batchId}-${task.state.executionId}`;
    expect(batch.batchId).toMatch(/^mine-[0-9a-f]{8}$/);
    expect(names.sort()).toEqual([
      expect.stringMatching(new RegExp(`^${head}-agent-org-repo-42-[0-9a-f]{8}$`)),
      expect.stringMatching(new RegExp(`^${head}-db_1-x-org-repo-42-[0-9a-f]{8}$`)),
      expect.stringMatching(new RegExp(`^${head}-network-[0-9a-f]{8}$`)),
    ]);
  });

  test.concurrent("[S2-DOC-parallel-tasks] [S2-TEST-parallel-creation] many of one id run at one time, each with containers of its own", async () => {
    const manager = place.manager({ concurrency: 4 });
    await using batch = await manager.setupBatch([]);
    const tasks = await Promise.all(Array.from({ length: 3 }, () => manager.setupTask(taskOf("same"))));
    const outputs = await Promise.all(
      tasks.map(async ({ state }, index) => {
        await manager.exec(state.agentContainerId, `echo ${index} > /mark`);
        return (await manager.exec(state.agentContainerId, "cat /mark")).stdout;
      }),
    );
    expect(outputs).toEqual(["0\n", "1\n", "2\n"]);
    expect(new Set(tasks.map(({ state }) => state.agentContainerId)).size).toBe(3);
    expect(new Set(tasks.map(({ state }) => state.executionId)).size).toBe(3);
    await Promise.all(tasks.map((task) => task.teardown()));
    expect(await batchCensus(batch.batchId)).toEqual([]);
  });

  test.concurrent("[S2-DOC-parallel-creation] services come up side by side: each waits for the other", async () => {
    const manager = place.manager();
    await using batch = await manager.setupBatch([]);
    const waits = (name: string, other: string): ReturnType<typeof box> =>
      box(name, {
        command: `httpd -p 80 -h /tmp; until wget -qO /dev/null http://${other}/; do grep -q . /dev/null; sleep 0.1; wget -S -O /dev/null http://${other}/ 2>&1 | grep -q HTTP && break; done; echo met; sleep 60`,
        waitFor: { log: "met", timeout: 60_000 },
      });
    const task = await batch.setupTask(taskOf("pair", [waits("left", "right"), waits("right", "left")]));
    expect([task.status("left").logs, task.status("right").logs].every((logs) => logs.includes("met"))).toBe(true);
  });

  test.concurrent("a clean-up touches nothing but its own [S2-DOC-cleanup-own-only] and never throws [S2-DOC-cleanup-never-throws]", async () => {
    const manager = place.manager();
    await using batch = await manager.setupBatch([]);
    const [one, other] = await Promise.all([batch.setupTask(taskOf("one", [web])), batch.setupTask(taskOf("other"))]);
    // Somebody else was faster.
    await askEngine("DELETE", `/containers/${one.state.agentContainerId}`, { force: true });
    await one.teardown();
    await one.teardown();
    expect(await manager.exec(other.state.agentContainerId, "echo here")).toMatchObject({ stdout: "here\n" });
    expect(await batchCensus(batch.batchId)).toHaveLength(1);
    expect(manager.events.filter(({ type }) => type === "leak")).toEqual([]);
  });

  test.concurrent("a command that runs when its task is taken down is told so", async () => {
    const manager = place.manager();
    await using batch = await manager.setupBatch([]);
    const task = await batch.setupTask(taskOf("cut short"));
    let resolve = (): void => undefined;
    const promise = new Promise<void>((done) => {
      resolve = done;
    });
    const running = manager.exec(task.state.agentContainerId, "echo on; sleep 60", { onStdout: () => resolve() });
    await promise;
    await Promise.all([expectRefused(running, "closed"), task.teardown()]);
    expect(manager.events.filter(({ type }) => type === "leak")).toEqual([]);
  });

  test.concurrent("what could not be removed is told of, and removed by the next teardown", async () => {
    const manager = place.manager();
    const batch = await manager.setupBatch([]);
    const task = await batch.setupTask(taskOf("held", [web]));
    const network = task.state.networkId ?? "";
    const { Id } = await askEngine<{ Id: string }>("GET", `/networks/${network}`);
    const { default: http } = await import("node:http");
    const socketPath = (process.env["DOCKER_HOST"] ?? "").slice("unix://".length);
    const post = (path: string, body: object): Promise<{ Id: string }> =>
      new Promise((resolve, reject) => {
        const sent = http.request(
          { socketPath, method: "POST", path, headers: { "Content-Type": "application/json" } },
          (answer) => {
            let text = "";
            answer.on("data", (chunk: Buffer) => {
              text += chunk;
            });
            answer.on("end", () => resolve(text === "" ? { Id: "" } : (JSON.parse(text) as { Id: string })));
          },
        );
        sent.on("error", reject);
        sent.end(JSON.stringify(body));
      });
    const squatter = await post("/containers/create", {
      Image: BUSYBOX,
      Cmd: ["sleep", "60"],
      HostConfig: { NetworkMode: Id },
    });
    await post(`/containers/${squatter.Id}/start`, {});
    try {
      await batch.teardown();
      const leaks = manager.events.filter(({ type }) => type === "leak");
      expect(leaks).toHaveLength(1);
      expect(leaks[0]).toMatchObject({
        taskId: "held",
        message: expect.stringMatching(/^network .* could not be removed: .*active endpoints/),
      });
    } finally {
      await askEngine("DELETE", `/containers/${squatter.Id}`, { force: true });
    }
    await batch.teardown();
    expect(await batchCensus(batch.batchId)).toEqual([]);
    expect(manager.events.at(-1)).toMatchObject({ type: "task-down", taskId: "held" });
  });

  test.concurrent("[S2-DOC-tracking] a container of another batch, or of one that is gone, is not found", async () => {
    const manager = place.manager();
    const first = await manager.setupBatch([]);
    const task = await first.setupTask(taskOf("first"));
    await using second = await manager.setupBatch([]);
    await expectRefused(manager.setupTask(taskOf("which")), "conflict", "Several batches");
    await first.teardown();
    await expectRefused(manager.exec(task.state.agentContainerId, "true"), "not_found", task.state.agentContainerId);
    await expectRefused(manager.cloneSandboxState(task.state), "not_found");
    await expectRefused(first.setupTask(taskOf("late")), "closed", first.batchId);
    expect(await batchCensus(second.batchId)).toEqual([]);
  });
});

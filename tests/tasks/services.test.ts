import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { BUSYBOX } from "../support/docker/engine.js";
import { listenInEngine } from "../support/docker/engine-process.js";
import { askEngine, batchCensus, box, describeTasks, taskOf } from "../support/docker/task-place.js";
import { expectRefused } from "../support/refused.js";

describeTasks("services", [BUSYBOX], (place) => {
  test.concurrent("are waited for: a port, a line of the log, a command", async ({ expect }) => {
    const manager = place.manager();
    await using batch = await manager.setupBatch([]);
    const task = await batch.setupTask(
      taskOf("ready", [
        box("port", { command: "sleep 0.5; exec nc -ll -p 5432 -e cat", waitFor: { port: 5432 } }),
        box("log", {
          command: "printf 'rea'; sleep 2; printf 'dy now'; sleep 60",
          waitFor: { log: "ready now" },
        }),
        box("command", {
          command: "sleep 0.5; touch /tmp/up; sleep 60",
          waitFor: { command: ["test", "-e", "/tmp/up"] },
        }),
      ]),
    );
    const { exitCode, stdout } = await manager.exec(task.state.agentContainerId, "echo ping | nc -w 2 port 5432");
    expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: "ping\n" });
    expect(task.status("log").logs).toBe("ready now");
    expect(await manager.exec(task.state.serviceContainers["command"] ?? "", "ls /tmp")).toMatchObject({
      stdout: "up\n",
    });
  });

  test.concurrent("that do not get ready in time fail the set-up with their log, and nothing is left", async ({
    expect,
  }) => {
    const manager = place.manager();
    await using batch = await manager.setupBatch([]);
    const slow = box("slow", { command: "echo still loading; sleep 60", waitFor: { port: 1, timeout: 400 } });
    await expectRefused(
      batch.setupTask(taskOf("late", [slow])),
      "unavailable",
      '"slow"',
      "port 1",
      "400 ms",
      "still loading",
    );
    expect(await batchCensus(batch.batchId)).toEqual([]);
  });

  test.concurrent("that die before they are ready fail the set-up at once with their log, and nothing is left", async ({
    expect,
  }) => {
    const manager = place.manager();
    await using batch = await manager.setupBatch([]);
    const dying = box("dying", { command: "sleep 0.1; echo no config >&2; exit 7", waitFor: { port: 80 } });
    const others = ["a", "b"].map((name) => box(name, { command: "sleep 60" }));
    await expectRefused(
      batch.setupTask(taskOf("dies", [...others, dying])),
      "unavailable",
      '"dying"',
      "exit code 7",
      "no config",
    );
    expect(await batchCensus(batch.batchId)).toEqual([]);
  });

  test.concurrent("that die later are reported with their log", async ({ expect }) => {
    const manager = place.manager();
    await using batch = await manager.setupBatch([]);
    const task = await batch.setupTask(
      taskOf("later", [box("dying", { command: "sleep 0.4; echo out of luck; exit 3" })]),
    );
    await expect
      .poll(() => manager.events.filter(({ type }) => type === "command-exit"))
      .toEqual([
        expect.objectContaining({
          taskId: "later",
          container: "dying",
          message: expect.stringMatching(/exit code 3:\nout of luck$/),
        }),
      ]);
    expect(task.status("dying")).toEqual({ running: false, exitCode: 3, logs: "out of luck\n" });
  });

  test.concurrent("that cannot be started leave nothing: containers, network, volumes", async ({ expect }) => {
    const manager = place.manager();
    await using batch = await manager.setupBatch([]);
    const bad = box("bad", { user: "nobody-knows" });
    await expectRefused(
      batch.setupTask(taskOf("fails", [box("good", { command: "sleep 60" }), bad, box("fine")])),
      "invalid_argument",
      "nobody-knows",
    );
    expect(await batchCensus(batch.batchId)).toEqual([]);
  });

  test.concurrent("are gone when the set-up is aborted in its middle", async ({ expect }) => {
    const manager = place.manager();
    await using batch = await manager.setupBatch([]);
    const controller = new AbortController();
    const never = box("never", { command: "sleep 60", waitFor: { port: 1 } });
    const setup = batch.setupTask(taskOf("aborted", [never]), { signal: controller.signal });
    await expect.poll(() => batchCensus(batch.batchId)).toHaveLength(3);
    controller.abort();
    await expectRefused(setup, "aborted");
    expect(await batchCensus(batch.batchId)).toEqual([]);
  });

  test.concurrent("run with the rights that services are used to, the agent's commands with none", async ({
    expect,
  }) => {
    const manager = place.manager();
    await using batch = await manager.setupBatch([]);
    const served = box("served", {
      command: "grep CapEff /proc/self/status; chown user /tmp && echo chowned; sleep 60",
      waitFor: { log: "chowned" },
    });
    const task = await batch.setupTask(taskOf("rights", [served]));
    // Docker's default set without NET_RAW and MKNOD.
    expect(task.status("served").logs).toContain("CapEff:\t00000000a00405fb");
    const { stdout } = await manager.exec(task.state.agentContainerId, "grep CapEff /proc/self/status");
    expect(stdout).toBe("CapEff:\t0000000000000000\n");
    const { HostConfig } = await askEngine<{ HostConfig: { CapAdd: string[]; Privileged: boolean } }>(
      "GET",
      `/containers/${task.state.serviceContainers["served"]}/json`,
    );
    expect(HostConfig.Privileged).toBe(false);
    expect(HostConfig.CapAdd.filter((name) => /NET_RAW|MKNOD/.test(name))).toEqual([]);
  });

  test.concurrent("run what their image says, as its user, in its directory, and are ready once its health check says so", async ({
    expect,
  }) => {
    const contextPath = join(place.path, "healthy");
    mkdirSync(contextPath);
    writeFileSync(
      join(contextPath, "Dockerfile"),
      [
        `FROM ${BUSYBOX}`,
        "USER user",
        "WORKDIR /home/user",
        'ENTRYPOINT ["sh", "-c", "sleep 0.3; touch up; echo $0 $1 $(id -un) $(pwd); sleep 60"]',
        'CMD ["from", "image"]',
        "HEALTHCHECK CMD test -e up",
      ].join("\n"),
    );
    const imageSpec = { type: "build", tag: `glovebox-test/healthy:${process.pid}`, contextPath } as const;
    const manager = place.manager();
    await using batch = await manager.setupBatch([]);
    const waitFor = { health: true, log: "/home/user" } as const;
    const task = await batch.setupTask(
      taskOf("image", [
        box("own", { imageSpec, waitFor }),
        box("given", { imageSpec, command: ["by", "hand"], waitFor }),
      ]),
    );
    expect(task.status("own").logs).toBe("from image user /home/user\n");
    expect(task.status("given").logs).toBe("by hand user /home/user\n");
    await expectRefused(
      batch.setupTask(taskOf("none", [box("plain", { waitFor: { health: true } })])),
      "invalid_argument",
      "HEALTHCHECK",
    );
  });

  test.concurrent("keep their variables to themselves: the engine is not told", async ({ expect }) => {
    const manager = place.manager();
    await using batch = await manager.setupBatch([]);
    const secret = "hunter2-hunter2";
    const db = box("db", { environment: { DB_PASSWORD: secret }, command: "echo $DB_PASSWORD; exit 1" });
    const task = await batch.setupTask(taskOf("secret", [db]));
    const inspected = await askEngine("GET", `/containers/${task.state.serviceContainers["db"]}/json`);
    expect(JSON.stringify(inspected)).not.toContain(secret);
    await expect.poll(() => manager.events.find(({ type }) => type === "command-exit")).toBeDefined();
    expect(JSON.stringify(manager.events)).not.toContain(secret);
    expect(task.status("db").logs).toBe(`${secret}\n`);
  });
});

describeTasks("the network of a task", [BUSYBOX], (place) => {
  test("[S2-DOC-internal] reaches neither the host nor another task, by any address", async () => {
    const manager = place.manager();
    await using batch = await manager.setupBatch([]);
    // On every address that the engine's machine has, so also on those of the networks.
    using listener = await listenInEngine(7777, ["busybox", "nc", "-ll", "-p", "7777", "-e", "echo", "host"]);
    expect(listener.pid).toBeGreaterThan(0);
    const served = (name: string): ReturnType<typeof box> =>
      box(name, { command: "exec nc -ll -p 7000 -e echo service", waitFor: { port: 7000 } });
    const [one, other] = await Promise.all([
      batch.setupTask(taskOf("one", [served("mine")])),
      batch.setupTask(taskOf("other", [served("theirs")])),
    ]);
    type Network = {
      Internal: boolean;
      IPAM: { Config: { Subnet: string; Gateway?: string }[] };
      Containers: Record<string, { IPv4Address: string }>;
    };
    const look = (id: string | undefined): Promise<Network> => askEngine<Network>("GET", `/networks/${id}`);
    const [own, foreign] = await Promise.all([look(one.state.networkId), look(other.state.networkId)]);
    expect(own.Internal).toBe(true);
    expect(own.IPAM.Config[0]?.Subnet).toMatch(/\/28$/);
    const ask = async (address: string, port: number): Promise<string> =>
      (await manager.exec(one.state.agentContainerId, `nc -w 1 ${address} ${port} < /dev/null`, { timeout: 5_000 }))
        .stdout;
    expect(await ask("mine", 7000)).toBe("service\n");
    expect(await ask("theirs", 7000)).toBe("");
    const gateways = [own, foreign].map(
      ({ IPAM }) => IPAM.Config[0]?.Gateway ?? firstAddress(IPAM.Config[0]?.Subnet ?? ""),
    );
    const reached = await Promise.all([
      ...[...gateways, "10.213.0.1", "172.17.0.1"].map((address) => ask(address, 7777)),
      ...Object.values(foreign.Containers).map(({ IPv4Address }) => ask(IPv4Address.split("/")[0] ?? "", 7000)),
    ]);
    expect(reached.filter((text) => text !== "")).toEqual([]);
  });

  test("is open when the manager says so, and still the task's own", async () => {
    const manager = place.manager({ networkEnabled: true });
    await using batch = await manager.setupBatch([]);
    using listener = await listenInEngine(7778, ["busybox", "nc", "-ll", "-p", "7778", "-e", "echo", "host"]);
    expect(listener.pid).toBeGreaterThan(0);
    const [open, closed] = await Promise.all([
      batch.setupTask(taskOf("open")),
      batch.setupTask({ ...taskOf("closed"), networkConfig: { name: "task-net", internal: true } }),
    ]);
    const ask = async (id: string): Promise<string> =>
      (await manager.exec(id, "nc -w 1 $(ip route | awk '/default/ {print $3}') 7778 < /dev/null", { timeout: 5_000 }))
        .stdout;
    expect(await ask(open.state.agentContainerId)).toBe("host\n");
    expect(await ask(closed.state.agentContainerId)).toBe("");
    const { Name } = await askEngine<{ Name: string }>("GET", `/networks/${closed.state.networkId}`);
    expect(Name).toContain("-task-net-");
  });

  test("is none for a container alone: there is only its loopback", async () => {
    const manager = place.manager();
    await using batch = await manager.setupBatch([]);
    const task = await batch.setupTask(taskOf("alone"));
    expect(task.state.networkId).toBeUndefined();
    expect((await manager.exec(task.state.agentContainerId, "ls /sys/class/net")).stdout).toBe("lo\n");
  });

  test("there is one for each of 64 tasks that run at one time, and all of them answer", {
    timeout: 300_000,
  }, async () => {
    const manager = place.manager({ networkEnabled: true });
    const batch = await manager.setupBatch([]);
    const networkConfig = { name: "own", internal: true };
    const tasks = await Promise.all(
      Array.from({ length: 64 }, (_, n) => batch.setupTask({ ...taskOf(`task-${n}`), networkConfig })),
    );
    const addresses = await Promise.all(
      tasks.map(async ({ state }) => {
        const { stdout } = await manager.exec(state.agentContainerId, "ip -4 -o addr show eth0 | awk '{print $4}'");
        return stdout.trim();
      }),
    );
    expect(new Set(addresses).size).toBe(64);
    for (const address of addresses) expect(address).toMatch(/^198\.1[89]\.\d+\.\d+\/28$/);
    expect(new Set(tasks.map(({ state }) => state.networkId)).size).toBe(64);
    expect(await batchCensus(batch.batchId)).toHaveLength(128);
    await batch.teardown();
    expect(await batchCensus(batch.batchId)).toEqual([]);
  });
});

function firstAddress(subnet: string): string {
  return subnet.replace(/(\d+)\/\d+$/, (_, last: string) => String(Number(last) + 1));
}

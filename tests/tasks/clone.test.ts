import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { findEndpoint } from "../../src/sandbox/backends/docker/engine/endpoint.js";
import { Engine } from "../../src/sandbox/backends/docker/engine/engine.js";
import { removeContainer } from "../../src/sandbox/backends/docker/remove-container.js";
import { createDockerSandbox } from "../../src/sandbox/backends/docker.js";
import { deleteSnapshot } from "../../src/sandbox.js";
import { encodeTarMember, TAR_BLOCK, tarPadding } from "../../src/util/tar/tar-encode.js";
import { BUSYBOX } from "../support/docker/engine.js";
import { askEngine, batchCensus, box, describeTasks, taskOf } from "../support/docker/task-place.js";
import { expectRefused } from "../support/refused.js";

const store = box("store", {
  hostname: "db",
  command: "echo started >> /starts; exec nc -ll -p 5000 -e cat /data",
  waitFor: { port: 5000 },
});

describeTasks("a clone", [BUSYBOX], (place) => {
  test.concurrent("[S2-DOC-clone] has all containers with their files, a network of its own and the same names, and both go their own ways", async () => {
    const manager = place.manager();
    await using batch = await manager.setupBatch([]);
    const task = await batch.setupTask(taskOf("origin", [store]));
    const { state } = task;
    const run = async (id: string, script: string): Promise<string> =>
      (await manager.exec(id, script, { timeout: 10_000 })).stdout;
    const db = state.serviceContainers["store"] ?? "";
    await run(state.agentContainerId, "echo before > /mark");
    await run(db, "echo shared > /data");
    const clone = await manager.cloneSandboxState(state);
    const copy = clone.state.serviceContainers["store"] ?? "";
    expect(clone.state.executionId).toBe(state.executionId);
    expect(clone.state.networkId).not.toBe(state.networkId);
    expect(new Set([state.agentContainerId, db, clone.state.agentContainerId, copy]).size).toBe(4);
    expect(await run(clone.state.agentContainerId, "cat /mark; nc -w 2 db 5000 < /dev/null; hostname")).toBe(
      "before\nshared\nagent\n",
    );
    expect(await run(copy, "cat /starts")).toBe("started\nstarted\n");
    await Promise.all([run(state.agentContainerId, "echo origin > /mark"), run(db, "echo origin > /data")]);
    await Promise.all([run(clone.state.agentContainerId, "echo clone >> /mark"), run(copy, "echo clone > /data")]);
    expect(await run(state.agentContainerId, "cat /mark; nc -w 2 db 5000 < /dev/null")).toBe("origin\norigin\n");
    expect(await run(clone.state.agentContainerId, "cat /mark; nc -w 2 db 5000 < /dev/null")).toBe(
      "before\nclone\nclone\n",
    );
    await clone.teardown();
    expect(await run(state.agentContainerId, "cat /mark")).toBe("origin\n");
    expect(await batchCensus(batch.batchId)).toHaveLength(3);
  });

  test.concurrent("[S2-DOC-auto-cleanup] several are made at one time, also of each other, and all go with the task", async () => {
    const manager = place.manager();
    await using batch = await manager.setupBatch([]);
    const task = await batch.setupTask(taskOf("many"));
    const clones = await Promise.all([1, 2, 3].map(() => manager.cloneSandboxState(task.state)));
    const [first] = clones;
    if (first === undefined) throw new Error("there is no clone");
    await manager.exec(first.state.agentContainerId, "echo deep > /deep");
    const deep = await manager.cloneSandboxState(first.state);
    await first.teardown();
    expect((await manager.exec(deep.state.agentContainerId, "cat /deep")).stdout).toBe("deep\n");
    await task.teardown();
    expect(await batchCensus(batch.batchId)).toEqual([]);
    await expectRefused(manager.cloneSandboxState(task.state), "not_found");
  });

  test.concurrent("keeps limits, user, variables, host name and working directory", async () => {
    const manager = place.manager();
    await using batch = await manager.setupBatch([]);
    const task = await batch.setupTask(
      taskOf("kept", [], {
        hostname: "desk",
        user: "user",
        environment: { COLOUR: "red" },
        limits: { memory: 64 * 1024 * 1024, pids: 50, cpus: 0.5 },
      }),
    );
    const clone = await manager.cloneSandboxState(task.state);
    const look = async (id: string): Promise<unknown> => {
      const { stdout } = await manager.exec(id, "id -un; hostname; echo $COLOUR; pwd");
      const { HostConfig } = await askEngine<{ HostConfig: Record<string, unknown> }>("GET", `/containers/${id}/json`);
      const { Memory, PidsLimit, NanoCpus, CapAdd, CapDrop, SecurityOpt, NetworkMode } = HostConfig;
      return { stdout, Memory, PidsLimit, NanoCpus, CapAdd, CapDrop, SecurityOpt, NetworkMode };
    };
    const [origin, copy] = [await look(task.state.agentContainerId), await look(clone.state.agentContainerId)];
    expect(origin).toMatchObject({
      stdout: "user\ndesk\nred\n/\n",
      Memory: 67_108_864,
      PidsLimit: 50,
      NanoCpus: 500_000_000,
    });
    expect(copy).toEqual(origin);
  });

  test.concurrent("has the volumes of its images as they were, with owners, and without what was deleted", async () => {
    const contextPath = join(place.path, "volume");
    mkdirSync(contextPath);
    writeFileSync(join(contextPath, "seed"), "seed\n");
    writeFileSync(join(contextPath, "Dockerfile"), `FROM ${BUSYBOX}\nCOPY seed /data/store/seed\nVOLUME /data/store\n`);
    const manager = place.manager();
    await using batch = await manager.setupBatch([]);
    const imageSpec = { type: "build", tag: `glovebox-test/volume:${process.pid}`, contextPath } as const;
    const task = await batch.setupTask(taskOf("volumes", [], { imageSpec }));
    const { agentContainerId } = task.state;
    await manager.exec(agentContainerId, "rm /data/store/seed; mkdir /data/store/sub; chmod 777 /data/store/sub");
    await manager.exec(agentContainerId, "echo row > /data/store/sub/table", { user: "user" });
    const clone = await manager.cloneSandboxState(task.state);
    const copy = clone.state.agentContainerId;
    const { stdout } = await manager.exec(
      copy,
      "ls /data/store; cat /data/store/sub/table; stat -c %U /data/store/sub/table",
    );
    expect(stdout).toBe("sub\nrow\nuser\n");
    await manager.exec(copy, "echo clone > /data/store/only");
    expect((await manager.exec(agentContainerId, "ls /data/store")).stdout).toBe("sub\n");
  });

  test.concurrent("is of one moment: what one container had told the other is on both sides", async () => {
    const manager = place.manager();
    await using batch = await manager.setupBatch([]);
    const counter = box("counter", {
      command: "nc -ll -p 6000 -e sh -c 'read n; echo $n > /new; mv /new /seen; echo ok'",
      waitFor: { port: 6000 },
    });
    const task = await batch.setupTask(
      taskOf("cut", [counter], {
        // A number is written here only after the other container has it.
        command:
          "n=0; while :; do n=$((n+1)); echo $n | nc -w 5 counter 6000 | grep -q ok && echo $n > /new && mv /new /told; done",
        waitFor: { command: ["test", "-s", "/told"] },
      }),
    );
    for (let round = 0; round < 2; round++) {
      const clone = await manager.cloneSandboxState(task.state);
      // The clone's own commands begin anew, so what they wrote down before is read at once, from copies.
      const [told, seen] = await Promise.all([
        imageFile(clone.state.agentContainerId, "/told"),
        imageFile(clone.state.serviceContainers["counter"] ?? "", "/seen"),
      ]);
      expect([0, 1]).toContain(seen - told);
      await clone.teardown();
    }
  });
});

describeTasks("a chain of clones", [BUSYBOX], (place) => {
  // From an image that has almost as many layers as there can be; GLOVEBOX_CLONES=130 goes all the way from one layer.
  const whole = Number(process.env["GLOVEBOX_CLONES"] ?? 0);
  const image = `glovebox-test/layers:${process.pid}`;
  beforeAll(() => loadLayered(place.path, image, 97));

  test.concurrent("goes on beyond the number of layers that there can be", { timeout: 600_000 }, async () => {
    const manager = place.manager();
    const batch = await manager.setupBatch([]);
    const spec = whole === 0 ? { imageSpec: { type: "pull", tag: image } as const } : {};
    let task = await batch.setupTask(taskOf("chain", [], spec));
    const count = whole === 0 ? 6 : whole;
    const layers: number[] = [];
    const gone: Promise<void>[] = [];
    for (let made = 0; made < count; made++) {
      await manager.exec(task.state.agentContainerId, `echo ${made} >> /chain`);
      const next = await manager.cloneSandboxState(task.state);
      if (made > 0) gone.push(task.teardown());
      task = next;
      layers.push(await layersOf(task.state.agentContainerId));
    }
    const { stdout } = await manager.exec(task.state.agentContainerId, "wc -l < /chain; tail -n 1 /chain; id -u");
    expect(stdout).toBe(`${count}\n${count - 1}\n0\n`);
    await Promise.all(gone);
    await batch.teardown();
    expect(await batchCensus(batch.batchId)).toEqual([]);
    if (whole === 0) expect(layers).toEqual([98, 99, 100, 1, 2, 3]);
    else expect(Math.max(...layers)).toBe(100);
  });

  test.concurrent("of snapshots does too, and each keeps the files of those before", async () => {
    await using sandbox = await createDockerSandbox({ image, docker: { user: "user" }, env: { COLOUR: "red" } });
    const layers: number[] = [];
    const snapshots: string[] = [];
    for (let n = 0; n < 5; n++) {
      await sandbox.shell(`echo ${n} >> chain`);
      const snapshot = await sandbox.snapshot();
      snapshots.push(snapshot);
      const path = `/images/glovebox/snapshot:${snapshot}/json`;
      layers.push((await askEngine<{ RootFS: { Layers: string[] } }>("GET", path)).RootFS.Layers.length);
      await sandbox.restore(snapshot);
    }
    expect(layers).toEqual([98, 99, 100, 1, 2]);
    const look = await sandbox.shell("wc -l < chain; id -un; echo $COLOUR; pwd");
    expect(look.stdout).toBe("5\nuser\nred\n/workspace\n");
    await using fork = await sandbox.fork();
    expect(await fork.readFile("chain")).toBe("0\n1\n2\n3\n4\n");
    for (const snapshot of snapshots) await deleteSnapshot(snapshot);
  });
});

async function layersOf(container: string): Promise<number> {
  const { Image } = await askEngine<{ Image: string }>("GET", `/containers/${container}/json`);
  return (await askEngine<{ RootFS: { Layers: string[] } }>("GET", `/images/${Image}/json`)).RootFS.Layers.length;
}

/** Makes an image of many small layers over the small image, all at once. */
function loadLayered(folder: string, image: string, count: number): void {
  const path = join(folder, "layered");
  mkdirSync(path);
  execFileSync("sh", ["-c", `docker save ${BUSYBOX} | tar -x -C ${path}`]);
  const [{ Config, Layers }] = JSON.parse(readFileSync(join(path, "manifest.json"), "utf8")) as [
    { Config: string; Layers: string[] },
  ];
  const config = JSON.parse(readFileSync(join(path, Config), "utf8")) as {
    rootfs: { diff_ids: string[] };
    history?: object[];
  };
  for (let n = Layers.length; n < count; n++) {
    const layer = archiveOf(`layer-${n}`, String(n));
    writeFileSync(join(path, `${n}.tar`), layer);
    config.rootfs.diff_ids.push(`sha256:${createHash("sha256").update(layer).digest("hex")}`);
    config.history?.push({ created_by: `layer ${n}` });
    Layers.push(`${n}.tar`);
  }
  writeFileSync(join(path, "layered.json"), JSON.stringify(config));
  writeFileSync(join(path, "manifest.json"), JSON.stringify([{ Config: "layered.json", RepoTags: [image], Layers }]));
  execFileSync("sh", ["-c", `tar -c -C ${path} . | docker load`], { stdio: ["ignore", "ignore", "pipe"] });
}

function archiveOf(name: string, content: string): Buffer {
  const size = content.length;
  const header = encodeTarMember({ path: Buffer.from(name), type: "file", mode: 0o644, mtime: 0, size });
  return Buffer.concat([header, Buffer.from(content), tarPadding(size), Buffer.alloc(2 * TAR_BLOCK)]);
}

/** A number in a file of the image that a container was made from. */
async function imageFile(container: string, path: string): Promise<number> {
  const engine = new Engine(findEndpoint());
  try {
    const { Image } = await engine.call<{ Image: string }>("GET", `/containers/${container}/json`);
    const body = { Image, Cmd: ["x"] };
    const { Id } = await engine.call<{ Id: string }>("POST", "/containers/create", { body });
    try {
      const archive = await engine.stream("GET", `/containers/${Id}/archive`, { query: { path } });
      return Number(execFileSync("tar", ["-xO"], { input: Buffer.concat(await archive.toArray()) }).toString());
    } finally {
      await removeContainer(engine, Id);
    }
  } finally {
    engine.close();
  }
}

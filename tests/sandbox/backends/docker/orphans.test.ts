import { rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, expect, test } from "vitest";
import { currentOwner } from "../../../../src/machine/owner.js";
import { engineOf } from "../../../../src/sandbox/backends/docker/engine/engines.js";
import {
  DEADLINE_LABEL,
  HOME_LABEL,
  isAbandoned,
  KEPT_LABEL,
  OWNER_LABEL,
  ownerLabels,
} from "../../../../src/sandbox/backends/docker/labels.js";
import { sweepEngine } from "../../../../src/sandbox/backends/docker/sweep.js";
import { createDockerSandbox } from "../../../../src/sandbox/backends/docker.js";
import type { SandboxOptions } from "../../../../src/sandbox/types.js";
import { deleteSnapshot, listSandboxes, listSnapshots, reap, removeSandbox } from "../../../../src/sandbox.js";
import { BUSYBOX } from "../../../support/docker/engine.js";
import { untilDestroyed } from "../../../support/docker/engine-events.js";
import { dockerCensus } from "../../../support/docker/harness.js";
import { describeOwnEngine } from "../../../support/docker/own-engine.js";
import { type Child, compileSources, startChild } from "../../../support/run/compiled.js";

const built = fileURLToPath(new URL("../../../../dist", import.meta.url));
const children: Child[] = [];

/** An owner who was here and is no more: this one with a start time that it never had. */
function deadLabels(): Record<string, string> {
  const { bootId, pidNs, pid, host } = currentOwner();
  return { ...ownerLabels(), [OWNER_LABEL]: JSON.stringify([bootId, pidNs, pid, "1", host]) };
}

async function hold(
  options: SandboxOptions,
  more: object = {},
  directory = built,
): Promise<{ id: string; snapshot?: string; child: Child }> {
  const child = startChild(directory, "hold-container.mjs", [JSON.stringify({ options, ...more })]);
  children.push(child);
  return { ...(JSON.parse(await child.line()) as { id: string; snapshot?: string }), child };
}

async function containersOf(id: string): Promise<string[]> {
  const filters = { label: [`glovebox.sandbox=${id}`] };
  const found = await engineOf().call<{ Names: string[] }[]>("GET", "/containers/json", {
    query: { all: true, filters },
  });
  return found.map(({ Names }) => Names[0] ?? "");
}

describeOwnEngine("what is left when a manager is killed", () => {
  afterAll(() => {
    for (const child of children) child.kill();
  });

  test("its containers are gone by themselves within a second, its records by the next reap", async () => {
    const { id, child } = await hold({ image: BUSYBOX });
    expect(await containersOf(id)).toHaveLength(1);
    const label = (owner: string): string => `glovebox.sandbox=${owner}`;
    const measure = await createDockerSandbox({ image: BUSYBOX });
    const forced = await untilDestroyed(label(measure.id), 1, () =>
      engineOf().call("DELETE", `/containers/glovebox-${measure.id}`, { query: { force: true } }),
    );
    await measure.teardown();
    const gone = await untilDestroyed(label(id), 1, () => child.kill());
    console.log(`it was gone ${Math.round(gone)} ms after the kill; by force: ${Math.round(forced)} ms`);
    // What the engine itself needs on this machine, now, is not ours.
    expect(gone).toBeLessThan(1_000 + forced);
    expect((await reap()).removed).toContain(id);
    expect((await listSandboxes()).map((each) => each.id)).not.toContain(id);
  });

  test("a manager that only stands still keeps its container", async () => {
    const { id, child } = await hold({ image: BUSYBOX });
    process.kill(child.pid, "SIGSTOP");
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    await sweepEngine();
    expect(await containersOf(id)).toHaveLength(1);
    process.kill(child.pid, "SIGCONT");
    await untilDestroyed(`glovebox.sandbox=${id}`, 1, () => child.kill());
    await reap();
  });

  test("a kept one stays with its files and is opened again; a snapshot stays", async () => {
    const { id, snapshot = "", child } = await hold({ image: BUSYBOX, keep: true }, { snapshot: true });
    child.kill();
    await child.ended;
    await reap();
    await sweepEngine();
    expect(await containersOf(id)).toHaveLength(1);
    expect((await listSnapshots()).map((each) => each.id)).toContain(snapshot);
    {
      await using again = await createDockerSandbox({ id });
      expect(await again.readFile("file")).toBe("kept");
      expect((await again.exec({ argv: ["ps"] })).stdout).not.toContain("while :");
      await again.writeFile("file", "later");
      await again.restore(snapshot);
      expect(await again.readFile("file")).toBe("kept");
    }
    expect(await containersOf(id)).toHaveLength(1);
    await removeSandbox(id);
    await deleteSnapshot(snapshot);
    expect(await containersOf(id)).toEqual([]);
    expect(await dockerCensus()).toEqual([]);
  });

  test("a kept one is opened again when the program that it mounts is gone, as after an update", async () => {
    const older = compileSources({ withGuests: true });
    try {
      const { id, child } = await hold({ image: BUSYBOX, keep: true }, {}, older.directory);
      child.kill();
      await child.ended;
      rmSync(join(older.directory, "guest"), { recursive: true });
      {
        await using again = await createDockerSandbox({ id });
        expect(await again.readFile("file")).toBe("kept");
      }
      await removeSandbox(id);
    } finally {
      older.remove();
    }
    expect(await dockerCensus()).toEqual([]);
  });

  test("a kept one that has not ended yet is ended before it is opened again", async () => {
    const { id, child } = await hold({ image: BUSYBOX, keep: true }, {});
    // It cannot take notice of its manager's end.
    await engineOf().call("POST", `/containers/glovebox-${id}/pause`);
    child.kill();
    await child.ended;
    {
      await using again = await createDockerSandbox({ id });
      expect((await again.exec({ argv: ["echo", "here"] })).stdout).toBe("here\n");
    }
    await removeSandbox(id);
    expect(await dockerCensus()).toEqual([]);
  });

  const engine = (): ReturnType<typeof engineOf> => engineOf();
  const make = async (labels: Record<string, string>): Promise<() => Promise<boolean[]>> => {
    const body = { Image: BUSYBOX, Cmd: ["true"], Labels: labels };
    const { Id } = await engine().call<{ Id: string }>("POST", "/containers/create", { body });
    const name = `glovebox-sweep-${Math.random().toString(36).slice(2)}`;
    await engine().call("POST", "/networks/create", { body: { Name: name, Labels: labels, Internal: true } });
    await engine().call("POST", "/volumes/create", { body: { Name: name, Labels: labels } });
    const changes = Object.entries(labels).map(([key, value]) => `LABEL ${key}=${JSON.stringify(value)}`);
    const image = await engine().call<{ Id: string }>("POST", "/commit", {
      query: { container: Id, changes: changes.join("\n") },
      body: {},
    });
    const paths = [`/containers/${Id}/json`, `/networks/${name}`, `/volumes/${name}`, `/images/${image.Id}/json`];
    return () =>
      Promise.all(
        paths.map((path) =>
          engine()
            .call("GET", path)
            .then(
              () => true,
              () => false,
            ),
        ),
      );
  };

  test("takes what a dead owner left, and nothing of others", async () => {
    const alive = ownerLabels();
    const foreign = { ...alive, [OWNER_LABEL]: JSON.stringify(["boot", "pid:[1]", 1, "1", "elsewhere"]) };
    const over = { ...foreign, [DEADLINE_LABEL]: new Date(Date.now() - 1_000).toISOString() };
    const unreadable = { ...foreign, [OWNER_LABEL]: "{", [DEADLINE_LABEL]: "soon" };
    const kept = { ...deadLabels(), [KEPT_LABEL]: "1" };
    const there = {
      dead: await make(deadLabels()),
      alive: await make(alive),
      foreign: await make(foreign),
      over: await make(over),
      unreadable: await make(unreadable),
      kept: await make(kept),
    };
    expect(await sweepEngine({ dryRun: true })).toHaveLength(8);
    expect(await there.dead()).toEqual([true, true, true, true]);
    const { swept } = await reap();
    expect(swept).toHaveLength(8);
    for (const [name, look] of Object.entries(there)) {
      const isLeft = name !== "dead" && name !== "over";
      expect([name, ...(await look())]).toEqual([name, isLeft, isLeft, isLeft, isLeft]);
    }
    expect(await sweepEngine()).toEqual([]);
  });

  test("labels say whose something is", () => {
    expect(isAbandoned(ownerLabels())).toBe(false);
    expect(isAbandoned(deadLabels())).toBe(true);
    expect(isAbandoned({ ...deadLabels(), [KEPT_LABEL]: "1" })).toBe(false);
    expect(isAbandoned({})).toBe(false);
    expect(Object.keys(ownerLabels())).toContain(HOME_LABEL);
  });
});

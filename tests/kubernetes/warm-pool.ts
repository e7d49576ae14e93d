import { afterAll, beforeAll, describe, type ExpectStatic, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { probeKubernetes } from "../../src/sandbox/backends/kubernetes/probe.js";
import type { Sandbox, SandboxOptions } from "../../src/sandbox/types.js";
import { type AgentSandbox, type Found, isReady, type PoolKind } from "../support/kubernetes/agent-sandbox.js";
import { api } from "../support/kubernetes/cluster.js";
import { startClient } from "../support/kubernetes/killed-client.js";
import { expectNothingLeftIn } from "../support/kubernetes/left-of.js";
import type { FilePlace, PlaceBeside } from "../support/kubernetes/place.js";
import { definePoolKinds, pathOf, runPoolController } from "../support/kubernetes/pool-kinds.js";
import { expectRefused } from "../support/refused.js";

const POOL = "ready";
/** Longer than a guest that is not warm waits for its first host. */
const LONG_ENOUGH = 65_000;

/** The tests of warm pools, one after the other; beside them, others may run in the place of a file. */
export function testWarmPool(file: FilePlace): void {
  describe("pods of a warm pool", () => {
    let place: PlaceBeside;
    const made: AsyncDisposable[] = [];
    let controller: AgentSandbox | undefined;
    /** The claim of a client that was killed. */
    let orphan: Found;
    const warm = { warmPool: POOL, lease: 10_000 };
    const list = async (kind: PoolKind): Promise<Found[]> => (await api("GET", pathOf(kind, place.namespace))).items;
    const names = async (kind: PoolKind): Promise<string[]> => (await list(kind)).map(({ metadata }) => metadata.name);
    const optionsOf = (): SandboxOptions => {
      const { kubernetes, ...options } = place.options();
      return { ...options, kubernetes: { ...kubernetes, ...warm } };
    };
    const open = (opts: SandboxOptions = {}): Promise<Sandbox> =>
      place.open({ ...opts, kubernetes: { ...warm, ...opts.kubernetes } });
    /** Those that wait: nobody has claimed them. */
    const waiting = async (): Promise<Found[]> =>
      (await list("Sandbox")).filter(({ metadata }) => metadata.labels["agents.x-k8s.io/warm-pool-sandbox"]);
    const readyOnes = async (): Promise<number> => (await list("SandboxWarmPool"))[0]?.status?.readyReplicas ?? 0;
    /** Waits for a pod that can be claimed. The pool's own count may still be that from before. */
    const hasOne = async (expect: ExpectStatic): Promise<void> => {
      await expect.poll(async () => (await waiting()).filter(isReady).length, { timeout: 60_000 }).toBe(1);
      await expect.poll(readyOnes, { timeout: 60_000 }).toBe(1);
    };
    beforeAll(async () => {
      place = await file.beside("warm-pool");
      made.push(place);
    });
    afterAll(async () => {
      await controller?.[Symbol.asyncDispose]();
      for (const each of made.reverse()) await each[Symbol.asyncDispose]();
    });

    it.sequential("needs the kinds and the pool; the one that doctor prints gets ready", async ({ expect }) => {
      // What is made once for a namespace, and the pool's pods need.
      await (await place.open()).teardown();
      await expectRefused(open(), "unsupported", "the cluster has no SandboxClaim");
      made.push(await definePoolKinds());
      controller = runPoolController(place.namespace);
      await expectRefused(open(), "not_found", `there is no SandboxWarmPool "${POOL}"`);
      const found = (await probeKubernetes({ options: optionsOf() })).find(({ name }) => name === "warm pool");
      for (const document of parseAllDocuments(found?.manifest ?? "")) {
        const body = document.toJS() as { kind: PoolKind; spec: { replicas?: number } };
        if (body.spec.replicas !== undefined) body.spec.replicas = 1;
        await api("POST", pathOf(body.kind, place.namespace), body);
      }
      await expect.poll(readyOnes, { timeout: 60_000 }).toBe(1);
    });

    it.sequential("is given to a client that is then killed", async ({ expect }) => {
      // In a ledger of its own: the next one to open a sandbox would remove what a dead process has left.
      const child = startClient("hold-kubernetes.mjs", optionsOf(), place.home);
      await child.line();
      [orphan] = await list("SandboxClaim");
      child.kill();
      expect(orphan).toMatchObject({ status: { sandbox: { name: expect.stringContaining(POOL) as unknown } } });
      await hasOne(expect);
    });

    it.sequential("gives a pod that has waited longer than a guest waits without a pool, and takes it away with its claim", async ({
      expect,
    }) => {
      const [{ metadata }] = (await waiting()) as [Found];
      const { name } = metadata;
      const pod = await api("GET", `${pathOf("Pod", place.namespace)}/${name as string}`);
      const age = (): number => Date.now() - Date.parse(pod.status.startTime as string);
      await expect.poll(age, { timeout: 2 * LONG_ENOUGH, interval: 1_000 }).toBeGreaterThan(LONG_ENOUGH);
      const sandbox = await open();
      expect(await sandbox.shell("id -u; pwd; cat /proc/1/comm")).toMatchObject({
        stdout: "1000\n/workspace\nglovebox-guest\n",
      });
      const claim = await api("GET", `${pathOf("SandboxClaim", place.namespace)}/glovebox-${sandbox.id}`);
      expect(claim.status.sandbox.name).toBe(name);
      await sandbox.teardown();
      await expect.poll(() => names("Pod"), { timeout: 60_000 }).not.toContain(name);
      expect(await names("SandboxClaim")).not.toContain(`glovebox-${sandbox.id}`);
      await expectNothingLeftIn(place.namespace);
    });

    it.sequential("refuses a pod of the pool that is not what is asked for, and passes by an empty pool", async ({
      expect,
    }) => {
      await hasOne(expect);
      await expectRefused(open({ limits: { memory: 64 << 20 } }), "unsupported", "resources");
      await expectNothingLeftIn(place.namespace);
      await api("PATCH", `${pathOf("SandboxWarmPool", place.namespace)}/${POOL}`, { spec: { replicas: 0 } });
      for (const name of await names("Sandbox")) await api("DELETE", `${pathOf("Sandbox", place.namespace)}/${name}`);
      await expect.poll(readyOnes).toBe(0);
      const warnings: (string | undefined)[] = [];
      await using sandbox = await open({
        onEvent: (event) => event.type === "warning" && warnings.push(event.message),
      });
      expect(await sandbox.shell("echo here")).toMatchObject({ stdout: "here\n" });
      expect(warnings).toEqual([expect.stringContaining("it has no free pod")]);
      expect(await names("SandboxClaim")).not.toContain(`glovebox-${sandbox.id}`);
    });

    it.sequential("is gone, with its claim, after the lease of the client that was killed", async ({ expect }) => {
      const { name } = orphan.metadata;
      const sandbox = orphan.status.sandbox.name as string;
      const reasons = async (): Promise<unknown> => {
        const claim = (await list("SandboxClaim")).find(({ metadata }) => metadata.name === name);
        return claim?.status.conditions.map(({ reason }: Found) => reason) ?? "gone";
      };
      await expect.poll(reasons, { timeout: 60_000 }).not.toContain("DependenciesReady");
      // What the cluster keeps of it, it keeps for a minute.
      await expect.poll(() => names("SandboxClaim"), { timeout: 120_000, interval: 1_000 }).toEqual([]);
      await expect.poll(() => names("Pod"), { timeout: 60_000 }).not.toContain(sandbox);
    });
  });
}

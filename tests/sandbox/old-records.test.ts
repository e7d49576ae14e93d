import { readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { SandboxOptions } from "../../src/sandbox/types.js";
import { deleteSnapshot, listSandboxes, listSnapshots, removeSandbox } from "../../src/sandbox.js";
import { type DaggerEngine, startDaggerEngine } from "../fakes/dagger/engine.js";
import { FakeVercel } from "../fakes/vercel/server.js";
import { daggerSdk } from "../support/dagger/sdk.js";
import { type DaytonaService, startDaytonaService } from "../support/daytona/service.js";
import {
  home,
  type Kept,
  keepOldFiles,
  killOwner,
  liveOn,
  MAKING,
  makeKept,
  putOldFiles,
  reapOld,
  useOldRecords,
  valuesOf,
} from "../support/old-records.js";
import { createRepository, createScratch, git, type Scratch } from "../support/scratch.js";

// The files of these sandboxes are at a service, so there is nothing of version 0.1 but its records: a sandbox is made and
// kept by this version, then gets the record that 0.1 wrote for one that was made with the same options.

let scratch: Scratch;
let repo: string;

beforeAll(() => {
  scratch = createScratch();
  repo = createRepository(join(scratch.path, "repo"));
});
afterAll(() => scratch.remove());

describe("a kept sandbox of version 0.1", () => {
  describe("at Vercel", () => {
    let service: FakeVercel;
    beforeAll(async () => {
      service = await FakeVercel.start();
    });
    afterAll(() => service.close());

    const settings: SandboxOptions = { limits: { cpus: 2 }, network: { allow: ["allowed.invalid"] } };
    const made = { ports: [3000], timeout: 120_000, region: "sfo1", snapshotExpiration: 86_400_000 };

    async function keep(name: string): Promise<Kept> {
      const source = name === "vercel-repository" && { repo, branch: "main" };
      const kept = await makeKept("vercel", { ...settings, ...source, vercel: { ...service.options, ...made } });
      const [machine = ""] = service.census().filter((each) => each.startsWith(kept.id));
      const stored = service.snapshotsOf(kept.id).find(({ method }) => method === "manual")?.id ?? "";
      useOldRecords(name, kept, { MACHINE: machine, STORED: stored, ...valuesOf(repo) });
      return kept;
    }

    test.each(["vercel", "vercel-repository"])("%s: opens with its files and all its settings", async (name) => {
      const hasRepository = name === "vercel-repository";
      const kept = await keep(name);
      const policies = service.policiesOf(kept.id);
      await liveOn("vercel", kept, { vercel: service.options }, async (sandbox) => {
        expect(service.paramsOf(kept.id)).toMatchObject({ resources: { vcpus: 2 }, timeout: 120_000, region: "sfo1" });
        expect(service.policiesOf(kept.id)).toEqual(policies);
        expect(JSON.stringify(policies.session)).toContain("allowed.invalid");
        expect(sandbox.capabilities.git).toBe(hasRepository);
        if (!hasRepository) return;
        const { files } = await sandbox.changes();
        expect(files).toEqual([{ path: "kept.txt", status: "added" }]);
      });
      expect(service.census()).toEqual([]);
    });

    test("vercel-repository: is reaped when its process was killed", async () => {
      const kept = await keep("vercel-repository");
      killOwner(kept.id);
      await reapOld("vercel", kept);
      expect(service.census()).toEqual([]);
    });
  });

  describe("of Dagger", () => {
    let engine: DaggerEngine;
    beforeAll(async () => {
      engine = await startDaggerEngine();
    });
    afterAll(() => engine.close());

    test("dagger: opens with its files, on an engine that has never seen it", async () => {
      const dagger = { session: { port: engine.port, token: engine.token }, sdk: daggerSdk };
      if (MAKING) {
        const setup = [["sh", "-c", "echo prepared > /prepared"]];
        const { id, snapshot } = await makeKept("dagger", { dagger: { ...dagger, setup } });
        const archives = readdirSync(join(home(), "sandboxes", id)).filter((name) => name.startsWith("kept-"));
        const ofSandbox = ["record.json", ...archives].map((name) => `sandboxes/${id}/${name}`);
        const ofSnapshot = ["json", "tar"].map((end) => `snapshots/${snapshot}.${end}`);
        keepOldFiles("dagger", home(), [...ofSandbox, ...ofSnapshot], {});
        await deleteSnapshot(snapshot);
        await removeSandbox(id);
      }
      putOldFiles("dagger", home(), {});
      const [{ id = "", workDir = "" } = {}] = await listSandboxes();
      const [{ id: snapshot = "" } = {}] = await listSnapshots();
      await liveOn("dagger", { id, snapshot, workDir }, { dagger }, async (sandbox) => {
        expect((await sandbox.exec({ argv: ["cat", "/prepared"] })).stdout).toBe("prepared\n");
        expect(await sandbox.readFile("ignored/x.txt")).toBe("ignored\n");
      });
      expect(readdirSync(join(home(), "snapshots"))).toEqual([]);
    });

    test("dagger-repository: opens with its files, and is compared with its repository", async () => {
      const dagger = { session: { port: engine.port, token: engine.token }, sdk: daggerSdk };
      const kept = await makeKept("dagger", { repo, branch: "main", dagger });
      const [archive = ""] = readdirSync(join(home(), "sandboxes", kept.id)).filter((name) => name.startsWith("kept-"));
      const { commit = "", ref = "" } = (await listSnapshots())[0] ?? {};
      useOldRecords("dagger-repository", kept, { ARCHIVE: archive, COMMIT: commit, REF: ref, ...valuesOf(repo) });
      await liveOn("dagger", kept, { dagger }, async (sandbox) => {
        expect((await sandbox.changes()).files).toEqual([{ path: "kept.txt", status: "added" }]);
        expect(await sandbox.readFile("ignored/x.txt")).toBe("ignored\n");
      });
      expect(readdirSync(join(home(), "snapshots"))).toEqual([]);
      expect(git(repo, "for-each-ref", "refs/glovebox").includes(kept.id)).toBe(false);
    });
  });

  describe("at Daytona", () => {
    let service: DaytonaService;
    beforeAll(async () => {
      service = await startDaytonaService();
    });
    afterAll(() => service.close());

    const sizes = { resources: { cpu: 3, memory: 6, disk: 10 }, autoStopMinutes: 11, ttlMinutes: 77 };

    async function keep(name: string): Promise<Kept> {
      const { apiUrl, apiKey } = service.service;
      const kept = await makeKept("daytona", {
        network: { allow: ["allowed.invalid"] },
        ...(name === "daytona-repository" && { repo: "acme/widgets", branch: "run-1", githubToken: service.token }),
        daytona: { apiUrl, apiKey, ...sizes },
      });
      const { commit = "", ref = "" } = (await listSnapshots())[0] ?? {};
      const values = { API: apiUrl, HOMEDIR: dirname(dirname(kept.workDir)), COMMIT: commit, REF: ref };
      const base = git(service.origin, "rev-parse", "main");
      useOldRecords(name, kept, { ...values, BASE: base, GITHUB: service.github.origin });
      return kept;
    }

    test.each(["daytona", "daytona-repository"])("%s: opens with its files, sizes, times and network", async (name) => {
      const { apiUrl, apiKey } = service.service;
      const kept = await keep(name);
      await liveOn("daytona", kept, { daytona: { apiUrl, apiKey } }, async (sandbox) => {
        // The service takes no kept one away after a time.
        expect(machinesOf(service, kept.id)).toMatchObject([
          { size: sizes.resources, ttlMinutes: 0, autoStopInterval: 11, domainAllowList: "allowed.invalid" },
        ]);
        expect(sandbox.capabilities.git).toBe(name === "daytona-repository");
        if (!sandbox.capabilities.git) return;
        expect((await sandbox.changes()).files).toEqual([{ path: "kept.txt", status: "added" }]);
      });
      expect([service.service.sandboxes.size, service.service.snapshots.size]).toEqual([0, 0]);
    });

    test("daytona: is reaped when its process was killed", async () => {
      const kept = await keep("daytona");
      killOwner(kept.id);
      await reapOld("daytona", kept);
      expect([service.service.sandboxes.size, service.service.snapshots.size]).toEqual([0, 0]);
    });
  });
});

/** The machines that are under a sandbox now. */
function machinesOf({ service }: DaytonaService, id: string): unknown[] {
  return [...service.sandboxes.values()].filter(({ name }) => name.startsWith(`glovebox-${id}`));
}

import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { FAILPOINTS, type Failpoint, failpoint, parsePlans } from "../../../src/machine/failpoint.js";
import { type Acknowledged, type CrashPlace, createCrashPlace, takeCensus } from "../../support/git/crash-place.js";
import { type GitServer, serveGit } from "../../support/git/server.js";
import { createReapers, type Reapers } from "../../support/processes/reapers.js";
import { compileSources } from "../../support/run/compiled.js";
import { git } from "../../support/scratch.js";

const isRoot = process.getuid?.() === 0;
const TOKEN = "a-token-for-tests";

type Scenario =
  | "create"
  | "named"
  | "freed"
  | "overlay"
  | "exec"
  | "snapshot"
  | "plain"
  | "restore"
  | "start"
  | "fork"
  | "push"
  | "teardown"
  | "reap";

/** What passes each failpoint; `at` are the passes of interest, when it is not the first. */
const CASES: Record<Failpoint, readonly { scenario: Scenario; at?: readonly number[] }[]> = {
  "name.claimed": [{ scenario: "named", at: [1, 2] }],
  "create.recorded": [{ scenario: "create" }, { scenario: "named" }],
  "create.branched": [{ scenario: "create" }, { scenario: "start", at: [2] }],
  "create.drafted": [{ scenario: "create" }],
  "create.registered": [{ scenario: "create" }],
  "create.populated": [{ scenario: "create" }, { scenario: "start", at: [2] }],
  "create.sandbox-git": [{ scenario: "create" }],
  "create.grouped": [{ scenario: "create" }],
  "create.started": [{ scenario: "create" }],
  "create.ready": [{ scenario: "create" }, { scenario: "start", at: [2] }],
  "base.drafted": [{ scenario: "overlay" }],
  "base.held": [{ scenario: "overlay" }],
  "base.renamed": [{ scenario: "overlay" }],
  "exec.started": [{ scenario: "exec" }],
  "snapshot.frozen": [
    { scenario: "snapshot", at: [2] },
    { scenario: "plain", at: [2] },
  ],
  "snapshot.committed": [
    { scenario: "snapshot", at: [2] },
    { scenario: "plain", at: [2] },
  ],
  "snapshot.imported": [
    { scenario: "snapshot", at: [2] },
    { scenario: "plain", at: [2] },
  ],
  "snapshot.referenced": [
    { scenario: "snapshot", at: [2] },
    { scenario: "plain", at: [2] },
  ],
  "snapshot.archived": [{ scenario: "snapshot", at: [2] }],
  "snapshot.recorded": [{ scenario: "snapshot", at: [1] }],
  "restore.staged": [{ scenario: "restore" }, { scenario: "start" }],
  "restore.filled": [{ scenario: "restore" }, { scenario: "start" }],
  "fork.taken": [{ scenario: "fork" }],
  "fork.made": [{ scenario: "fork" }],
  "push.committed": [{ scenario: "push" }],
  "push.accepted": [{ scenario: "push" }],
  "push.moved": [{ scenario: "push" }],
  "teardown.stopped": [{ scenario: "teardown" }],
  "removal.marked": [{ scenario: "teardown" }, { scenario: "reap" }],
  "removal.resource": [{ scenario: "teardown" }, { scenario: "reap", at: [1, 2] }],
  "removal.emptied": [{ scenario: "teardown" }, { scenario: "reap" }, { scenario: "freed" }],
  "removal.discarded": [{ scenario: "teardown" }, { scenario: "reap" }, { scenario: "freed" }],
  "reap.listed": [{ scenario: "reap" }],
  "reap.removed": [{ scenario: "reap" }],
  // A sandbox writes its record four times, with a control group; then come what it answers for and the snapshot's own.
  "file.written": [
    { scenario: "create", at: [1, 2] },
    { scenario: "snapshot", at: isRoot ? [5, 6] : [4, 5] },
  ],
  "lock.held": [{ scenario: "exec" }, { scenario: "snapshot", at: [2] }],
};

let root: string;
let compiled: ReturnType<typeof compileSources>;
let server: GitServer;
let reapers: Reapers;
beforeAll(async () => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "glovebox-failpoints-")));
  compiled = compileSources({ withGuests: true });
  server = await serveGit(root, TOKEN);
  reapers = createReapers(compiled.directory);
  mkdirSync(join(root, "etc"), { mode: 0o700 });
  createCrashPlace(join(root, "first"), compiled.directory);
});
afterAll(async () => {
  await server.close();
  reapers.close();
  compiled.remove();
  rmSync(root, { recursive: true, force: true });
});

let count = 0;

/** A place where nothing has happened yet, and its census; all but the name is the same for all of a kind. */
function newPlace(scenario: Scenario): { place: CrashPlace; before: unknown } {
  const place = createCrashPlace(join(root, `place${++count}-${process.pid}`), compiled.directory, join(root, "etc"));
  if (scenario === "push") {
    const remote = join(place.path, "remote.git");
    git(place.path, "clone", "--quiet", "--bare", place.repo, remote);
    git(remote, "config", "http.receivepack", "true");
    git(place.repo, "remote", "add", "origin", `${server.origin}/${place.marker}/remote.git`);
    return { place, before: takeCensus(place, [], []) };
  }
  untouched ??= JSON.stringify(takeCensus(place, [], [])).replaceAll(place.marker, "MARKER");
  return { place, before: JSON.parse(untouched.replaceAll("MARKER", place.marker)) };
}

let untouched: string | undefined;

interface Outcome {
  signal: string | null;
  code: number | null;
  said: Record<string, string>[];
  acknowledged: Acknowledged[];
}

async function play(place: CrashPlace, scenario: Scenario, faults: string, more: object = {}): Promise<Outcome> {
  const usual = { repo: place.repo, branch: "work", ...(isRoot && { limits: { pids: 200 } }) };
  const options = "id" in more ? more : { ...usual, ...more };
  const args = [JSON.stringify({ scenario, options, marker: place.marker, token: TOKEN })];
  const { signal, code, output } = await place.start("scenario.mjs", args, { GLOVEBOX_FAILPOINTS: faults }).ended;
  const lines = output.split("\n").filter(Boolean);
  const said = lines.map((line) => JSON.parse(line) as Record<string, string>);
  const acknowledged = said.filter((line) => "acknowledged" in line) as unknown as Acknowledged[];
  return { signal, code, said, acknowledged };
}

/** Reaps in a new process that is killed at the failpoint, if it gets there. */
async function reapAndDie(place: CrashPlace, name: Failpoint): Promise<unknown> {
  const { output, signal } = await place.start("reap.mjs", [], { GLOVEBOX_FAILPOINTS: `${name}=kill` }).ended;
  return signal ?? JSON.parse(output);
}

/** Whatever the branch was pushed to stays where the push has put it. */
function withPushed(place: CrashPlace, census: unknown): unknown {
  const refs = git(place.repo, "for-each-ref", "refs/heads/work").split("\n").filter(Boolean);
  const before = (census as { refs: string[] }).refs;
  return { ...(census as object), refs: [...before, ...refs].sort() };
}

function sorted(census: unknown): unknown {
  return { ...(census as object), refs: [...(census as { refs: string[] }).refs].sort() };
}

const kills = FAILPOINTS.flatMap((name) =>
  (CASES[name] ?? []).flatMap(({ scenario, at = [1] }) => at.map((pass) => [name, scenario, pass] as const)),
);

test("every failpoint has a case, and every case a failpoint", () => {
  expect(Object.keys(CASES).sort()).toEqual([...FAILPOINTS].sort());
  expect(Object.values(CASES).filter((cases) => cases.length === 0)).toEqual([]);
});

test("without the variable nothing happens; a misspelt one is refused", () => {
  expect(failpoint("create.ready")).toBeUndefined();
  expect(parsePlans("")).toBeUndefined();
  expect([...(parsePlans("exec.started=delay:20@3,lock.held=kill") ?? [])]).toEqual([
    ["exec.started", { fault: { delay: 20 }, pass: 3 }],
    ["lock.held", { fault: "kill", pass: 1 }],
  ]);
  for (const text of ["x=kill", "lock.held", "lock.held=die", "lock.held=kill@0", "lock.held=kill,"]) {
    expect(() => parsePlans(text)).toThrow(/Invalid GLOVEBOX_FAILPOINTS/);
  }
});

describe.concurrent("[F-01] [F-02] [F-04] [F-07] a process that is killed leaves nothing that reap does not take away", () => {
  test.for(kills)("%s in %s, pass %i", async ([name, scenario, pass], { expect }) => {
    const { place, before } = newPlace(scenario);
    if (scenario === "reap") expect((await play(place, "create", "create.ready=kill")).signal).toBe("SIGKILL");
    const { signal, said, acknowledged } = await play(place, scenario, `${name}=kill@${pass}`);
    expect({ signal, said }).toMatchObject({ signal: "SIGKILL" });
    // At the pass that was meant: what came before it was acknowledged.
    if (name.startsWith("snapshot.")) expect(acknowledged).toHaveLength(pass - 1);
    const ids = place.sandboxes();
    expect(["SIGKILL", expect.objectContaining({ failed: [] })]).toContainEqual(
      await reapAndDie(place, "removal.resource"),
    );
    const both = await Promise.all([reapers.reap(place.env), reapers.reap(place.env, { cache: 0 })]);
    expect(both).toMatchObject([
      { kept: [], failed: [] },
      { kept: [], failed: [] },
    ]);
    expect(await reapers.reap(place.env, { cache: 0 })).toEqual({ removed: [], kept: [], failed: [] });
    const after = takeCensus(place, ids, acknowledged);
    const expected = name === "push.moved" ? withPushed(place, before) : before;
    expect(sorted(after)).toEqual(sorted(expected));
  });
});

const scenarios = [...new Set(kills.map(([, scenario]) => scenario))];
describe.concurrent.each(["throw", "enospc"])("a step that fails with %s fails the call, and only that", (fault) => {
  test.for(scenarios)("%s", async (scenario, { expect }) => {
    const { place, before } = newPlace(scenario);
    if (scenario === "reap") await play(place, "create", "create.ready=kill");
    const names = FAILPOINTS.filter((name) => CASES[name].some((each) => each.scenario === scenario));
    const outcome = await play(place, scenario, names.map((name) => `${name}=${fault}`).join());
    expect(outcome).toMatchObject({ signal: null, code: 0 });
    const told = JSON.stringify(outcome.said);
    expect(names.filter((name) => !told.includes(`ailpoint ${name}`))).toEqual([]);
    const codes = outcome.said.flatMap(({ code }) => code ?? []);
    expect(codes.filter((code) => code !== (fault === "throw" ? "unavailable" : "no_space"))).toEqual([]);
    expect(await reapers.reap(place.env, { cache: 0 })).toEqual({ removed: [], kept: [], failed: [] });
    const after = takeCensus(place, [], outcome.acknowledged);
    expect(sorted(after)).toEqual(sorted(scenario === "push" ? withPushed(place, before) : before));
  });
});

test("a delay lets others see what is half done; then the call goes on", async () => {
  const { place, before } = newPlace("create");
  const args = [JSON.stringify({ scenario: "create", options: { repo: place.repo, branch: "work" } })];
  const child = place.start("scenario.mjs", args, { GLOVEBOX_FAILPOINTS: "create.branched=delay:5000" });
  await expect.poll(() => git(place.repo, "branch", "--list", "work"), { timeout: 60_000 }).not.toBe("");
  expect(git(place.repo, "worktree", "list").split("\n")).toHaveLength(1);
  expect(await child.ended).toEqual({ code: 0, signal: null, output: "" });
  expect(await reapers.reap(place.env, { cache: 0 })).toEqual({ removed: [], kept: [], failed: [] });
  expect(sorted(takeCensus(place, [], []))).toEqual(sorted(before));
});

test("[F-06] a push that was accepted and its process died is found by the next one: one commit, and the branch follows", async () => {
  const { place, before } = newPlace("push");
  expect((await play(place, "push", "push.accepted=kill", { keep: true })).signal).toBe("SIGKILL");
  const remote = join(place.path, "remote.git");
  const accepted = git(remote, "rev-parse", "work");
  expect(git(place.repo, "rev-parse", "work")).toBe(git(place.repo, "rev-parse", "main"));
  const [id = ""] = place.sandboxes();
  const { said } = await play(place, "push", "", { id, keep: false });
  expect(said).toContainEqual({ pushed: true });
  expect([git(remote, "rev-parse", "work"), git(place.repo, "rev-parse", "work")]).toEqual([accepted, accepted]);
  expect(git(remote, "rev-list", "--count", "main..work")).toBe("1");
  expect(await reapers.reap(place.env, { cache: 0 })).toMatchObject({ kept: [], failed: [] });
  expect(sorted(takeCensus(place, [id], []))).toEqual(sorted(withPushed(place, before)));
});

import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createLocalSandbox } from "../../../src/sandbox/backends/local.js";
import { type CrashPlace, createCrashPlace, takeCensus } from "../../support/git/crash-place.js";
import { processesWith } from "../../support/processes/host-processes.js";
import { compileSources } from "../../support/run/compiled.js";
import { createScratch, git, gitEach } from "../../support/scratch.js";

const run = promisify(execFile);
const isRoot = process.getuid?.() === 0;
let root: string;
let compiled: ReturnType<typeof compileSources>;
let count = 0;
beforeAll(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "glovebox-faults-")));
  compiled = compileSources({ withGuests: true });
});
afterAll(() => {
  compiled.remove();
  rmSync(root, { recursive: true, force: true });
});

function newPlace(): CrashPlace {
  return createCrashPlace(join(root, `place${++count}-${process.pid}`), compiled.directory);
}

interface Scarcity {
  meanwhile: Record<string, string>;
  later: Record<string, string>;
  kept: boolean;
  left: number;
  leaks: unknown[];
}

/** Runs the child `scarcity.mjs` through a shell script, in which `$@` is its command. */
async function meet(place: CrashPlace, fault: string, directory: string, script: string): Promise<Scarcity> {
  const job = JSON.stringify({ fault, place: directory, options: { repo: place.repo } });
  const child = join(fileURLToPath(new URL("../../children/scarcity.mjs", import.meta.url)));
  const command = ["-c", script, "sh", process.execPath, child, compiled.directory, job];
  const { stdout } = await run("sh", command, { env: { ...process.env, ...place.env }, timeout: 100_000 });
  return JSON.parse(stdout) as Scarcity;
}

const fine = { create: "ok", exec: "ok", snapshot: "ok", list: "ok", reap: "ok" };
const good = { later: fine, kept: true, left: 0, leaks: [] };

describe.runIf(isRoot).concurrent("a file system of 6 MB, in a mount namespace of its own", () => {
  const inTmpfs = (path: string): string =>
    `cp -a ${path} ${path}.copy && unshare -m --propagation private sh -c 'mount -t tmpfs -o size=6m tmpfs ${path} && cp -a ${path}.copy/. ${path}/ && exec "$@"' sh "$@"`;

  test.for([
    ["home", { create: "no_space", exec: "ok", snapshot: "no_space", list: "ok" }],
    ["repo", { create: "no_space", exec: "ok", snapshot: "no_space", list: "ok" }],
    ["tmp", { create: "no_space", exec: "ok", snapshot: "ok", list: "ok" }],
  ] as const)(
    "[F-09] [F-10] full, with the %s on it: no_space, records whole, fine once there is room",
    async ([name, meanwhile], { expect }) => {
      const place = newPlace();
      const before = takeCensus(place, [], []);
      const path = join(place.path, name);
      const said = await meet(place, "full", path, inTmpfs(path));
      expect(said).toMatchObject({ ...good, meanwhile });
      expect(takeCensus(place, [], [])).toEqual(before);
    },
  );

  test.for([
    ["home", { create: "permission_denied", exec: "ok", snapshot: "permission_denied", list: "ok" }],
    ["repo", { create: "permission_denied", exec: "ok", snapshot: "permission_denied", list: "ok" }],
    ["tmp", { create: "permission_denied", exec: "ok", snapshot: "ok", list: "ok" }],
  ] as const)(
    "[F-11] read-only, with the %s on it: permission_denied, and nothing is left",
    async ([name, meanwhile], { expect }) => {
      const place = newPlace();
      const before = takeCensus(place, [], []);
      const path = join(place.path, name);
      const said = await meet(place, "read-only", path, inTmpfs(path));
      expect(said).toMatchObject({ ...good, meanwhile });
      expect(takeCensus(place, [], [])).toEqual(before);
    },
  );
});

describe.concurrent("a process that lacks something", () => {
  test("[F-11] the home is deleted while a sandbox is open: typed errors, a new home, and teardown still takes all away", async ({
    expect,
  }) => {
    const place = newPlace();
    const before = takeCensus(place, [], []);
    const home = join(place.path, "home");
    const said = await meet(place, "deleted", home, 'exec "$@"');
    expect(said).toMatchObject({
      left: 0,
      leaks: [],
      meanwhile: { create: "ok", list: "ok", reap: "ok" },
      later: { create: "ok" },
    });
    expect(["ok", "not_found", "backend_lost"]).toContain(said.later["snapshot"]);
    const refs = git(place.repo, "for-each-ref", "--format=%(refname)", "refs/glovebox").split("\n").filter(Boolean);
    for (const ref of refs) git(place.repo, "update-ref", "-d", ref);
    expect(takeCensus(place, [], [])).toEqual(before);
  });

  test("[F-22] no free descriptor: unavailable, and fine when there are some again", async ({ expect }) => {
    const place = newPlace();
    const before = takeCensus(place, [], []);
    const said = await meet(place, "descriptors", place.path, 'ulimit -n 160 && exec "$@"');
    expect(said).toMatchObject({ ...good, meanwhile: { create: "unavailable", exec: "ok", snapshot: "unavailable" } });
    expect(takeCensus(place, [], [])).toEqual(before);
  });
});

describe("time", () => {
  test("only ages of files and dates that a user gave are told by the clock on the wall", () => {
    const sources = fileURLToPath(new URL("../../../src", import.meta.url));
    // Dates that other machines read, or that a service wrote; and when a file was asked for, to compare with its age.
    const dated = [
      ...[
        "backends/kubernetes.ts",
        "backends/kubernetes/isolation.ts",
        "backends/kubernetes/warm/claim.ts",
        "backends/vercel/credentials.ts",
        "backends/vercel/failure.ts",
      ],
      ...["credentials.ts", "credential-program.ts"].map((name) => `backends/kubernetes/client/${name}`),
      ...["git/source/clone-cache.ts", "git/repository/repository-lock.ts", "git/fast-commit/make-fast-commit.ts"],
      ...["egress/authority/make-authority.ts", "egress/secrets/command-source.ts", "egress/secrets/live-secret.ts"],
      ...["egress/secrets/credentials/aws-rewriting.ts", "egress/secrets/credentials/google-key.ts"],
    ].map((name) => `sandbox/${name}`);
    dated.push("machine/owner-mark.ts");
    const files = readdirSync(sources, { recursive: true, encoding: "utf8" }).filter((name) =>
      /^(machine|ledger|sandbox)\b.*\.ts$/.test(name),
    );
    expect(files).toEqual(expect.arrayContaining(dated));
    const uses = files
      .filter((name) => !dated.includes(name))
      .flatMap((name) =>
        readFileSync(join(sources, name), "utf8")
          .split("\n")
          .filter((line) => line.includes("Date.now") || /new Date\(\)(?!\.toISOString)/.test(line))
          .filter((line) => !/mtimeMs|expiresAt|const now = new Date\(\);/.test(line))
          .map((line) => `${name}: ${line.trim()}`),
      );
    expect(uses).toEqual([]);
  });

  test.each([3_600_000, -3_600_000, 10 * 365 * 86_400_000])(
    "[F-19] the clock jumps by %i ms: no early end, no late one",
    async (jump) => {
      const scratch = createScratch();
      const now = Date.now;
      const sandbox = await createLocalSandbox();
      try {
        const slow = sandbox.exec({ argv: ["sh", "-c", "sleep 0.5; echo done"], timeout: 60_000 });
        const late = sandbox.exec({ argv: ["sleep", "60"], timeout: 700 });
        Date.now = () => now() + jump;
        expect(await slow).toMatchObject({ stdout: "done\n", timedOut: false });
        expect(await late).toMatchObject({ timedOut: true });
      } finally {
        Date.now = now;
        await sandbox.teardown();
        scratch.remove();
      }
    },
  );

  test("[F-28] the event loop stands still: the guest keeps the deadline by itself", async () => {
    const scratch = createScratch();
    const sandbox = await createLocalSandbox();
    try {
      const marker = `glovebox-blocked-${process.pid}`;
      const call = sandbox.exec({ argv: ["sh", "-c", "while :; do sleep 1; done", marker], timeout: 2_000 });
      await expect.poll(() => processesWith(marker).length, { interval: 20 }).toBeGreaterThan(0);
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 4_000);
      expect(processesWith(marker)).toEqual([]);
      expect(await call).toMatchObject({ timedOut: true, exitCode: 137 });
    } finally {
      await sandbox.teardown();
      scratch.remove();
    }
  });
});

test("[F-28] a worker thread that ends takes the processes of its sandbox along; the rest goes with reap", async () => {
  const place = newPlace();
  const before = takeCensus(place, [], []);
  const child = place.start("worker.mjs", [JSON.stringify({ repo: place.repo }), place.marker]);
  try {
    expect(await child.line()).toBe("open");
    expect(await child.line()).toBe("ended");
    const alive = (): unknown => processesWith(place.marker).filter(({ pid }) => pid !== child.pid);
    await expect.poll(alive).toEqual([]);
  } finally {
    child.kill();
    await child.ended;
  }
  const { output } = await place.start("reap.mjs", []).ended;
  expect(JSON.parse(output)).toMatchObject({ removed: [expect.any(String)], failed: [] });
  expect(takeCensus(place, [], [])).toEqual(before);
});

test("two managers on one repository do not fail each other, nor the user who commits meanwhile", async () => {
  const place = newPlace();
  const { repo } = place;
  const before = takeCensus(place, [], []) as { refs: string[] };
  mkdirSync(join(repo, "own"), { recursive: true });
  const job = JSON.stringify({ options: { repo }, count: 6, atOnce: 3 });
  const managers = [place.start("many.mjs", [job]), place.start("many.mjs", [job])];
  let over = false;
  const ended = Promise.all(managers.map((child) => child.ended)).finally(() => {
    over = true;
  });
  let commits = 0;
  for (; !over; commits++) {
    gitEach(
      repo,
      ["commit", "--quiet", "--allow-empty", "-m", `mine ${commits}`],
      ["branch", "mine"],
      ["branch", "--quiet", "-D", "mine"],
    );
    // Nobody commits without a pause.
    await delay(30);
  }
  expect((await ended).map(({ code }) => code)).toEqual([0, 0]);
  expect(commits).toBeGreaterThan(5);
  expect(git(repo, "log", "--format=%s", `-${commits}`).split("\n")[0]).toBe(`mine ${commits - 1}`);
  git(repo, "reset", "--quiet", "--hard", `HEAD~${commits}`);
  await place.start("reap.mjs", []).ended;
  expect(takeCensus(place, [], [])).toEqual(before);
});

import { existsSync } from "node:fs";
import { afterAll, describe, expect, test } from "vitest";
import { ERROR_CODES } from "../../contracts/errors.js";
import { openSandbox } from "../../src/index.js";
import {
  type ConformanceCase,
  type ConformanceHarness,
  conformanceCases,
  createSandboxPool,
  formatReport,
  runConformance,
  runConformanceCase,
} from "../../src/testing.js";
import { createScratch } from "../support/scratch.js";
import { type StubManner, stubHarness, stubSandbox } from "../support/stub-sandbox.js";

const quick = { concurrency: 60, caseTimeout: 2_000 };
const notFailed = async (harness: ConformanceHarness) =>
  (await runConformance(harness, quick)).results.filter(({ status }) => status !== "failed").map(({ id }) => id);

/** What a sandbox that can only echo rightly passes: it does keep these promises. */
const ECHO_IS_ENOUGH = [
  "abort.after",
  "exec.argv.too-long",
  "exec.output.raw-only-on-request",
  "isolation.required",
  "lifecycle.capabilities",
  "lifecycle.closed",
  "lifecycle.dispose",
  "lifecycle.reasons",
  "lifecycle.teardown-twice",
];

describe("the cases", () => {
  test("are at least 80, with ids that are dotted and different, and a sentence each", () => {
    expect(conformanceCases.length).toBeGreaterThanOrEqual(80);
    expect(new Set(conformanceCases.map(({ id }) => id)).size).toBe(conformanceCases.length);
    for (const { id, title, requirement } of conformanceCases) {
      expect(id).toMatch(/^[a-z0-9-]+(\.[a-z0-9-]+)+$/);
      expect(title.length).toBeGreaterThan(2);
      expect(requirement).toMatch(/\.( \[S\d-AC-\d+\])*$/);
    }
  });

  test("cite the criteria of the first specification that any backend must keep", () => {
    const cited = conformanceCases.flatMap(({ requirement }) => requirement.match(/S1-AC-\d+/g) ?? []);
    const expected = [2, 3, 4, 5, 6, 7, 8, 9, 10, 12].map((n) => `S1-AC-${n}`);
    expect([...new Set(cited)].sort()).toEqual(expected.sort());
  });
});

describe("no case passes by accident", () => {
  test("on an empty object", async () => {
    expect(await notFailed(stubHarness(() => ({})))).toEqual([]);
  });

  test("on a backend that cannot be opened", async () => {
    const harness = stubHarness(() => {
      throw new Error("no such engine");
    });
    const report = await runConformance(harness, quick);
    expect(report).toMatchObject({ passed: 0, skipped: 0, failed: conformanceCases.length });
    expect(report.results[0]?.reason).toBe("no such engine");
  });

  const manners: readonly StubManner[] = ["nothing", "numb", ...ERROR_CODES];
  test.concurrent.each(manners)("on a sandbox that always answers: %s", async (manner) => {
    expect(await notFailed(stubHarness(() => stubSandbox(manner, false)))).toEqual([]);
  });

  test.concurrent.each(manners)("on a sandbox that can echo and else always answers: %s", async (manner) => {
    const passed = await notFailed(stubHarness(() => stubSandbox(manner, true)));
    expect(passed.filter((id) => !ECHO_IS_ENOUGH.includes(id))).toEqual([]);
    expect(passed).toContain("lifecycle.dispose");
  });
});

describe("running one case", () => {
  const harness = stubHarness(() => stubSandbox("numb", true));
  const passing: ConformanceCase = {
    id: "made.up",
    title: "made up",
    requirement: "It is true.",
    run: async () => undefined,
  };
  const failing: ConformanceCase = { ...passing, run: () => Promise.reject(new Error("it is not")) };
  const unmet: ConformanceCase = { ...passing, needs: () => "capabilities.pty is false" };

  test("says that it passed, and how long it took", async () => {
    const result = await runConformanceCase(passing, harness);
    expect(result).toEqual({ id: "made.up", status: "passed", durationMs: expect.any(Number) });
  });

  test("says why it failed", async () => {
    expect(await runConformanceCase(failing, harness)).toMatchObject({ status: "failed", reason: "it is not" });
  });

  test("fails when the sandbox no longer answers after it", async () => {
    const deaf = stubHarness(() => stubSandbox("numb", false));
    expect(await runConformanceCase(passing, deaf)).toMatchObject({ status: "failed" });
  });

  test("fails when teardown throws", async () => {
    const clinging = stubHarness(() => {
      const sandbox = stubSandbox("numb", true);
      return Object.assign(Object.create(sandbox) as object, {
        teardown: () => Promise.reject(new Error("I will not go")),
      });
    });
    expect(await runConformanceCase(passing, clinging)).toMatchObject({ status: "failed", reason: "I will not go" });
  });

  test("fails when it takes too long", async () => {
    const endless: ConformanceCase = { ...passing, run: () => new Promise(() => undefined) };
    const result = await runConformanceCase(endless, harness, { caseTimeout: 20 });
    expect(result).toMatchObject({ status: "failed", reason: "the case: no result within 20 ms" });
  });

  test("gives back what a case makes after its time was up", async () => {
    let isLate = (): void => undefined;
    const late = new Promise<void>((resolve) => {
      isLate = resolve;
    });
    let made = "";
    const dawdling: ConformanceCase = {
      ...passing,
      async run({ hostDirectory, defer }) {
        await late;
        made = await hostDirectory();
        defer(async () => isDeferred());
      },
    };
    let isDeferred = (): void => undefined;
    const deferred = new Promise<void>((resolve) => {
      isDeferred = resolve;
    });
    expect(await runConformanceCase(dawdling, harness, { caseTimeout: 20 })).toMatchObject({ status: "failed" });
    isLate();
    await deferred;
    await expect.poll(() => existsSync(made)).toBe(false);
    expect(made).toMatch(/glovebox-conformance-/);
  });

  test("skips with the reason of the harness while the case fails", async () => {
    const skipping = { ...harness, skips: { "made.up": "the engine cannot" } };
    expect(await runConformanceCase(failing, skipping)).toMatchObject({
      status: "skipped",
      reason: "the engine cannot",
    });
  });

  test("fails on a skip of a case that passes", async () => {
    const result = await runConformanceCase(passing, { ...harness, skips: { "made.up": "the engine cannot" } });
    expect(result).toMatchObject({ status: "failed", reason: expect.stringContaining("the skip no longer applies") });
  });

  test("fails on a skip of a case that does not apply anyway", async () => {
    const result = await runConformanceCase(unmet, { ...harness, skips: { "made.up": "the engine cannot" } });
    expect(result).toMatchObject({ status: "failed", reason: expect.stringContaining("capabilities.pty is false") });
  });

  test("skips with the reason of the capability", async () => {
    expect(await runConformanceCase(unmet, harness)).toMatchObject({
      status: "skipped",
      reason: "capabilities.pty is false",
    });
  });

  test("fails when what a capability denies is not refused", async () => {
    const refused = () => Promise.reject(new Error("it resolved to a process"));
    const result = await runConformanceCase({ ...unmet, refused }, harness);
    expect(result).toMatchObject({
      status: "failed",
      reason: "capabilities.pty is false, but: it resolved to a process",
    });
  });

  test("gives everything back, last made first, also after a failure", async () => {
    const order: string[] = [];
    const messy: ConformanceCase = {
      ...passing,
      async run({ defer, hostDirectory }) {
        defer(async () => order.push("first"));
        expect(await hostDirectory()).toMatch(/glovebox-conformance-/);
        defer(async () => order.push("second"));
        throw new Error("on purpose");
      },
    };
    expect(await runConformanceCase(messy, harness)).toMatchObject({ status: "failed", reason: "on purpose" });
    expect(order).toEqual(["second", "first"]);
  });
});

describe("a sandbox that cases use one after the other", () => {
  const scratch = createScratch();
  afterAll(() => scratch.remove());
  const harness = stubHarness(() => openSandbox({ backend: "local", isolation: "none" }));
  const sharing = (run: ConformanceCase["run"]): ConformanceCase => ({
    id: "made.up",
    title: "made up",
    requirement: "It is true.",
    shares: true,
    run,
  });

  /** Runs one case after which the next one looks where it is, and at what is there. */
  async function runTwo(first: ConformanceCase["run"]): Promise<{ isSame: boolean; left: string; status: string }> {
    const pool = createSandboxPool(harness);
    const ids: string[] = [];
    let left = "";
    const { status } = await runConformanceCase(
      sharing(async (context) => {
        ids.push(context.sandbox.id);
        await first(context);
      }),
      harness,
      { pool },
    );
    const second = sharing(async ({ sandbox }) => {
      ids.push(sandbox.id);
      left = (await sandbox.shell("ls -A")).stdout;
    });
    expect(await runConformanceCase(second, harness, { pool })).toMatchObject({ status: "passed" });
    await pool.close();
    return { isSame: ids[0] === ids[1], left, status };
  }

  test("is empty again for the next one", async () => {
    const litter: ConformanceCase["run"] = async ({ sandbox }) => {
      await sandbox.shell("touch a .b ..c -d '*' && mkdir -p locked/deep && touch locked/deep/e && chmod 0 locked");
    };
    expect(await runTwo(litter)).toEqual({ isSame: true, left: "", status: "passed" });
  });

  test("is not given on when a case failed in it", async () => {
    const fails = () => Promise.reject(new Error("it is not"));
    expect(await runTwo(fails)).toEqual({ isSame: false, left: "", status: "failed" });
  });

  test("is not given on when it cannot be emptied, or has no voice any more", async () => {
    const clings: ConformanceCase["run"] = async ({ sandbox }) => {
      await sandbox.spawn({ argv: ["sh", "-c", "while :; do echo x > still-there; done"] });
    };
    expect(await runTwo(clings)).toEqual({ isSame: false, left: "", status: "passed" });
    const leaves: ConformanceCase["run"] = async ({ sandbox, defer }) => defer(() => sandbox.teardown());
    expect(await runTwo(leaves)).toEqual({ isSame: false, left: "", status: "passed" });
  });

  test("is not given on when its files are a repository's", async () => {
    const own = await openSandbox({ backend: "local", isolation: "none" });
    const pool = createSandboxPool(stubHarness(() => own));
    const teardown = () => own.teardown();
    const versioned = { capabilities: { ...own.capabilities, git: true }, exec: own.exec.bind(own), teardown };
    await pool.give({ ...versioned, processes: async () => [] } as unknown as typeof own);
    await expect(own.exec({ argv: ["true"] })).rejects.toMatchObject({ code: "closed" });
    await pool.close();
  });

  test("is the one that was asked what it can do, and the one in which a refusal is shown", async () => {
    const ids: string[] = [];
    const watched = stubHarness(async () => {
      const sandbox = await openSandbox({ backend: "local", isolation: "none" });
      ids.push(sandbox.id);
      return sandbox;
    });
    const pool = createSandboxPool(watched);
    const refused: ConformanceCase["run"] = async ({ sandbox }) => void ids.push(sandbox.id);
    const unmet = { ...sharing(refused), shares: false, options: { maxOutput: 5 }, needs: () => "no", refused };
    expect(await runConformanceCase(unmet, watched, { pool })).toMatchObject({ status: "skipped", reason: "no" });
    expect(await runConformanceCase(sharing(refused), watched, { pool })).toMatchObject({ status: "passed" });
    await pool.close();
    expect(ids).toEqual([ids[0], ids[0], ids[0]]);
  });

  test("is gone with the pool", async () => {
    const pool = createSandboxPool(harness);
    const sandbox = await pool.take();
    await pool.give(sandbox);
    await pool.close();
    await expect(sandbox.exec({ argv: ["true"] })).rejects.toMatchObject({ code: "closed" });
  });
});

describe("a report", () => {
  const harness = stubHarness(() => stubSandbox("numb", true));
  const only = ["abort", "lifecycle.capabilities", "pty.size"];

  test("counts what became of each case, and tells as it goes", async () => {
    const heard: string[] = [];
    const skips = { "abort.midway": "it has no signals" };
    const onResult = ({ id }: { id: string }) => heard.push(id);
    const report = await runConformance({ ...harness, skips }, { only, onResult, caseTimeout: 500 });
    const ids = conformanceCases.map(({ id }) => id).filter((id) => id.startsWith("abort.") || only.includes(id));
    expect(heard).toEqual(ids);
    expect(report.results.map(({ id }) => id)).toEqual(ids);
    expect(report).toMatchObject({ backend: "stub", passed: 2, skipped: 1, failed: ids.length - 3 });
  });

  test("fails on names that fit no case", async () => {
    const report = await runConformance({ ...harness, skips: { "no.such": "x" } }, { only: ["lifecycle.capabilitie"] });
    expect(report).toMatchObject({ passed: 0, failed: 2, skipped: 0 });
    expect(report.results.map(({ id, reason }) => `${id}: ${reason}`)).toEqual([
      "no.such: skips names a case that does not exist",
      "lifecycle.capabilitie: only names a case that does not exist",
    ]);
  });

  test("runs exclusive cases alone and after the others", async () => {
    let open = 0;
    let isShared = false;
    const counting = stubHarness(() => {
      const sandbox = stubSandbox("numb", true);
      open++;
      return Object.assign(Object.create(sandbox) as object, { teardown: async () => void open-- });
    });
    const heard: string[] = [];
    const exclusive = conformanceCases.filter((each) => each.exclusive).map(({ id }) => id);
    await runConformance(counting, {
      ...quick,
      only: ["exec.env", "exec.output.flood"],
      onResult({ id }) {
        heard.push(id);
        if (exclusive.includes(id) && open > 0) isShared = true;
      },
    });
    expect(heard.slice(-2).sort()).toEqual(["exec.env.host-absent", "exec.output.flood"]);
    expect(isShared).toBe(false);
  });

  test("is printed as a table on which no sandbox can write lines", () => {
    const text = formatReport({
      backend: "stub",
      passed: 1,
      failed: 1,
      skipped: 1,
      results: [
        { id: "a.b", status: "passed", durationMs: 5 },
        { id: "a.longer", status: "failed", reason: "got \u001b[31m\npassed  everything", durationMs: 1_234 },
        { id: "c.d", status: "skipped", reason: "no pty", durationMs: 0 },
      ],
    });
    expect(text).toBe(
      [
        "conformance of stub",
        "passed   a.b             5 ms",
        "failed   a.longer     1234 ms  got  [31m passed  everything",
        "skipped  c.d             0 ms  no pty",
        "stub: 1 passed, 1 failed, 1 skipped",
        "",
      ].join("\n"),
    );
  });
});

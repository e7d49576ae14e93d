import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { getSandboxExecutor, type SandboxExecutor } from "../../src/sandbox/executor.js";
import { FakeVercel, PROJECT, TEAM, TOKEN } from "../fakes/vercel/server.js";
import { setEnv } from "../support/environment.js";
import { createScratch, type Scratch } from "../support/scratch.js";
import { whyNotAtVercel } from "../support/vercel/harness.js";

const reason = whyNotAtVercel(process.env);
if (reason !== undefined) test("the executor at the service itself", ({ skip }) => skip(reason));

describe.each(reason === undefined ? ["a stand-in", "the service"] : ["a stand-in"])("the executor at %s", (where) => {
  let service: FakeVercel | undefined;
  let scratch: Scratch;
  let executor: SandboxExecutor;
  let restore: () => void;

  beforeAll(async () => {
    scratch = createScratch();
    if (where === "a stand-in") service = await FakeVercel.start();
    const access = { VERCEL_TOKEN: TOKEN, VERCEL_TEAM_ID: TEAM, VERCEL_PROJECT_ID: PROJECT };
    const standIn = service && { ...access, VERCEL_OIDC_TOKEN: undefined, GLOVEBOX_VERCEL_API: service.api };
    restore = setEnv({ VERCEL: "1", GLOVEBOX_BACKEND: undefined, ...standIn });
    executor = getSandboxExecutor();
  });

  afterEach(() => executor.cleanup());

  afterAll(async () => {
    restore();
    await service?.close();
    scratch.remove();
  });

  /** How many there are is seen at the stand-in alone; others may have machines at the service. */
  const expectMachines = (count: number): void => {
    if (service !== undefined) expect(service.census()).toHaveLength(count);
  };

  test("[S5-AC-2] with VERCEL=1 the factory gives the Vercel executor, and no machine before it is used", async () => {
    expectMachines(0);
    await executor.execute("true");
    expectMachines(1);
    expect(service?.requests.some(({ line }) => line.startsWith("POST /v3/sandboxes")) ?? true).toBe(true);
  });

  test("[S5-AC-3] [S5-TEST-vercel-execute-python] should execute Python code", async ({ skip }) => {
    const { exitCode } = await executor.execute("sh", ["-c", "command -v python3"]);
    if (exitCode !== 0) skip("there is no python3 outside of the home directories here");
    const result = await executor.execute("python3", ["-c", "print(6 * 7)"]);
    expect(result).toEqual({ stdout: "42\n", stderr: "", exitCode: 0 });
  });

  test("[S5-TEST-vercel-execute-output] should return command output", async () => {
    const result = await executor.execute("sh", ["-c", 'echo out; echo err >&2; echo "$A"; pwd; exit 3'], {
      env: { A: "set" },
    });
    expect(result).toMatchObject({
      stdout: expect.stringMatching(/^out\nset\n\/vercel/),
      stderr: "err\n",
      exitCode: 3,
    });
    if (service !== undefined) expect(result.stdout).toBe("out\nset\n/vercel/sandbox\n");
    expect(await executor.execute("sleep", ["60"], { timeout: 500 })).toMatchObject({ exitCode: 124 });
    if (service === undefined || process.getuid?.() === 0) {
      expect((await executor.execute("id", ["-un"], { sudo: true })).stdout).toBe("root\n");
    }
  });

  test("[S5-TEST-vercel-write-read] should write and read files in sandbox", async () => {
    await executor.writeFile("sub/file.txt", "content");
    await executor.writeFile("bytes", Buffer.from([0xff, 0, 1]));
    expect(await executor.readFile("sub/file.txt")).toBe("content");
    expect(await executor.readFile("missing")).toBeNull();
    expect(await executor.listFiles()).toEqual(["bytes", "sub"]);
    expect(await executor.listFiles("nowhere")).toEqual([]);
    expectMachines(1);
  });

  test("[S5-TEST-vercel-cleanup-stops] cleanup should stop the sandbox, and it can be used again", async () => {
    await executor.writeFile("file", "x");
    await executor.cleanup();
    expectMachines(0);
    expect(await executor.readFile("file")).toBeNull();
    expectMachines(1);
  });
});

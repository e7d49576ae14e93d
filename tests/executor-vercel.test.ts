import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { getSandboxExecutor, type SandboxExecutor } from "../src/sandbox/executor.js";
import { FakeVercel, PROJECT, TEAM, TOKEN } from "./fakes/vercel-server.js";
import { createScratch, type Scratch } from "./support/scratch.js";

const VARIABLES = ["VERCEL", "VERCEL_TOKEN", "VERCEL_TEAM_ID", "VERCEL_PROJECT_ID", "GLOVEBOX_VERCEL_API"] as const;
const before = VARIABLES.map((name) => [name, process.env[name]] as const);
let service: FakeVercel;
let scratch: Scratch;
let executor: SandboxExecutor;

beforeAll(async () => {
  scratch = createScratch();
  service = await FakeVercel.start();
  const values = { VERCEL: "1", VERCEL_TOKEN: TOKEN, VERCEL_TEAM_ID: TEAM, VERCEL_PROJECT_ID: PROJECT };
  Object.assign(process.env, values, { GLOVEBOX_VERCEL_API: service.api });
  executor = getSandboxExecutor();
});

afterEach(() => executor.cleanup());

afterAll(async () => {
  for (const [name, value] of before) {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
  await service.close();
  scratch.remove();
});

const machines = (): number => service.census().length;

describe("the executor on Vercel", () => {
  test("[S5-AC-2] with VERCEL=1 the factory gives the Vercel executor, and no machine before it is used", async () => {
    expect(machines()).toBe(0);
    await executor.execute("true");
    expect(machines()).toBe(1);
    expect(service.requests.some(({ line }) => line.startsWith("POST /v3/sandboxes"))).toBe(true);
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
    expect(result).toEqual({ stdout: "out\nset\n/vercel/sandbox\n", stderr: "err\n", exitCode: 3 });
    expect(await executor.execute("sleep", ["60"], { timeout: 500 })).toMatchObject({ exitCode: 124 });
    if (process.getuid?.() === 0) {
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
    expect(machines()).toBe(1);
  });

  test("[S5-TEST-vercel-cleanup-stops] cleanup should stop the sandbox, and it can be used again", async () => {
    await executor.writeFile("file", "x");
    await executor.cleanup();
    expect(machines()).toBe(0);
    expect(await executor.readFile("file")).toBeNull();
    expect(machines()).toBe(1);
  });
});

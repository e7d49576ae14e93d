import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { FakeVercel, PROJECT, TEAM, TOKEN } from "../../../fakes/vercel/server.js";
import { createScratch, type Scratch } from "../../../support/scratch.js";

const run = promisify(execFile);
const dist = join(fileURLToPath(new URL("../../../..", import.meta.url)), "dist");
let service: FakeVercel;
let scratch: Scratch;
let env: NodeJS.ProcessEnv;

beforeAll(async () => {
  if (!existsSync(join(dist, "examples", "vercel.js"))) throw new Error("there is no dist/: type npm run build first");
  scratch = createScratch();
  service = await FakeVercel.start();
  const access = { VERCEL_TOKEN: TOKEN, VERCEL_TEAM_ID: TEAM, VERCEL_PROJECT_ID: PROJECT };
  env = { ...process.env, ...access, GLOVEBOX_VERCEL_API: service.api };
});

afterAll(async () => {
  await service.close();
  scratch.remove();
});

test("the example runs from the package, ends by itself and leaves nothing", async () => {
  const { stdout } = await run(process.execPath, [join(dist, "examples", "vercel.js")], { env });
  expect(stdout).toBe("computed, cut short, forked\n");
  expect(service.census()).toEqual([]);
});

test("a program that forgets to tear down ends all the same", async () => {
  const program = `const { openSandbox } = await import(${JSON.stringify(join(dist, "src", "index.js"))});
    const box = await openSandbox({ backend: "vercel" }); console.log((await box.shell("echo forgot")).stdout);`;
  const { stdout } = await run(process.execPath, ["--input-type=module", "-e", program], { env });
  expect(stdout).toContain("forgot");
});

test("what a killed process left is reaped by the next one", async () => {
  const program = `const { openSandbox } = await import(${JSON.stringify(join(dist, "src", "index.js"))});
    await openSandbox({ backend: "vercel" }); process.kill(process.pid, "SIGKILL");`;
  await run(process.execPath, ["--input-type=module", "-e", program], { env }).catch(() => undefined);
  expect(service.census().length).toBeGreaterThan(0);
  await run(process.execPath, [join(dist, "src", "cli.js"), "reap"], { env });
  expect(service.census()).toEqual([]);
});

test("doctor shows the backend: installed, credentials, reachable, what it keeps", async () => {
  const { stdout } = await run(process.execPath, [join(dist, "src", "cli.js"), "doctor", "--json"], { env });
  const { backends, default: chosen } = JSON.parse(stdout) as { backends: { backend: string }[]; default: string };
  expect(chosen).toBe("vercel");
  expect(backends.find(({ backend }) => backend === "vercel")).toMatchObject({
    installed: "yes",
    credentials: "yes",
    reachable: "yes",
    isolation: "microvm",
    limits: "memory cpus",
    network: "none full allow",
    snapshot: "consistent",
    fork: "copy",
    conformance: "never run",
  });
  expect(stdout).not.toContain(TOKEN);
});

import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));
let place: string;

beforeAll(async () => {
  place = await mkdtemp(join(tmpdir(), "glovebox-scripts-"));
});

afterAll(async () => {
  await rm(place, { recursive: true, force: true });
});

describe("system parts", () => {
  it("asks for nothing but what is missing", async () => {
    const cases = [["git", "bwrap", "gcc"], ["git", "musl-gcc"], ["bwrap", "cc"], []];
    const calls = cases.map((there) => `missingPackages((name) => ${JSON.stringify(there)}.includes(name), "linux")`);
    expect(await evaluate("system-parts.mjs", "missingPackages", `[${calls.join(",")}]`)).toEqual([
      [],
      ["bubblewrap"],
      ["git"],
      ["bubblewrap", "git", "gcc", "libc6-dev", "musl-tools"],
    ]);
  });

  it("asks for nothing where the local backend is not confined anyway", async () => {
    expect(await evaluate("system-parts.mjs", "missingPackages", '[missingPackages(() => false, "darwin")]')).toEqual([
      [],
    ]);
  });

  it("asks for what only some tests need where they can run", async () => {
    const calls = [
      'missingExtras((name) => name === "qemu-aarch64-static" || name === "dockerd", "linux", "x64")',
      'missingExtras((name) => name !== "dockerd", "linux", "arm64")',
      'missingExtras(() => false, "darwin", "x64")',
    ];
    expect(await evaluate("system-parts.mjs", "missingExtras", `[${calls.join(",")}]`)).toEqual([
      [
        ...["musl-tools", "gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"],
        ...["iproute2", "docker-registry", "busybox-static", "debootstrap", "chromium", "zsh", "fish"],
      ],
      ["docker.io"],
      [],
    ]);
  });

  it("tells an ordinary user exactly what to type, and root nothing", async () => {
    const calls = [1000, 0].map((uid) => `adviceFor(["bubblewrap"], () => true, ${uid}) ?? null`);
    expect(await evaluate("system-parts.mjs", "adviceFor", `[${calls.join(",")}]`)).toEqual([
      "missing: bubblewrap. Run:\nsudo apt-get update && sudo apt-get install -y bubblewrap",
      null,
    ]);
  });
});

describe.concurrent("the build of the guest", () => {
  for (const compiler of ["gcc", "musl-gcc"]) {
    it(`compiles with ${compiler}`, async ({ skip, expect }) => {
      if (process.platform !== "linux") skip("the guest runs on Linux only");
      const folder = await mkdtemp(join(place, "guest-"));
      const path = process.env["PATH"];
      const isThere = await evaluate("system-parts.mjs", "hasCommand", `hasCommand("${compiler}")`, path);
      if (isThere !== true) skip(`${compiler} is not installed`);
      const call = `await compileGuest("${compiler}", ${JSON.stringify(folder)})`;
      expect(await evaluate("build-guest.mjs", "compileGuest", call, path)).toBe(join(folder, "glovebox-guest"));
    });
  }

  it.runIf(process.platform === "linux")("names a compiler that is not there", async () => {
    const env = { ...process.env, CC: join(place, "no-compiler") };
    const { code, output } = await run([join(root, "scripts", "build-guest.mjs")], { env });
    expect(code).toBe(1);
    expect(output).toContain(`the compiler in CC does not exist: ${env.CC}`);
  });
});

describe("the tally of tests", () => {
  it("counts what passed, failed, broke outside a test, or was skipped, with the reason", async () => {
    const files = {
      "vitest.config.mjs": 'export default { test: { globals: true, include: ["*.test.mjs"] } };',
      "a.test.mjs": `
        it("passes", () => {});
        it("fails", () => { throw new Error("red"); });
        it("is skipped", ({ skip }) => skip("no such thing here"));
        it.skip("is silent", () => {});
      `,
      "broken.test.mjs": 'import "./missing.mjs"; it("is never seen", () => {});',
      "hook.test.mjs":
        'describe("suite", () => { beforeAll(() => { throw new Error("red"); }); it("waits", () => {}); });',
      "empty.test.mjs": "",
    };
    for (const [name, text] of Object.entries(files)) await writeFile(join(place, name), text);
    const tally = join(place, "tally.json");
    const { code } = await run([join(root, "scripts", "run-vitest.mjs"), tally], { cwd: place });
    expect(code).toBe(1);
    const { failures, ...counts } = JSON.parse(await readFile(tally, "utf8")) as { failures: { name: string }[] };
    expect({ ...counts, failures: failures.toSorted((a, b) => a.name.localeCompare(b.name)) }).toEqual({
      passed: 1,
      failed: 4,
      slowest: expect.arrayContaining([expect.stringMatching(/^ +\d+\.\d s {2}a\.test\.mjs$/)]) as unknown,
      skipped: expect.arrayContaining([
        { name: "is skipped", reason: "no such thing here" },
        { name: "is silent", reason: "no reason given" },
      ]) as unknown,
      failures: [
        { name: "a.test.mjs > fails", error: expect.stringContaining("Error: red") as unknown },
        { name: "broken.test.mjs", error: expect.stringContaining("missing.mjs") as unknown },
        { name: "empty.test.mjs", error: expect.stringContaining("No test suite found") as unknown },
        { name: "hook.test.mjs > suite", error: expect.stringContaining("Error: red") as unknown },
      ],
    });
  });
});

async function evaluate(script: string, name: string, expression: string, path = ""): Promise<unknown> {
  const source = `import { ${name} } from "./scripts/${script}"; console.log(JSON.stringify(${expression}));`;
  const { output } = await run(["--input-type=module", "-e", source], { cwd: root, env: { PATH: path } });
  return JSON.parse(output);
}

function run(
  args: string[],
  options: { cwd?: string; env?: NodeJS.ProcessEnv },
): Promise<{ code: number; output: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"], ...options });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text: string) => {
        output += text;
      });
    }
    child.once("error", reject);
    child.once("close", (code) => resolve({ code: code ?? 1, output }));
  });
}

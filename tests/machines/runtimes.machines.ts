import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { ConformanceReport } from "../../src/testing.js";
import { describeUnless } from "../support/describe-unless.js";
import { installPackage, whyNoPackage } from "../support/run/installed-package.js";
import { RUNTIMES, whyNoRuntime } from "../support/run/runtimes.js";
import { SET_UP_LIMIT } from "../support/run/set-up-limit.js";
import { createRepository } from "../support/scratch.js";
import { FIRST_PROGRAM, README } from "../support/walks/steps.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const USING = `
import { openSandbox } from "glovebox";
await using sandbox = await openSandbox({ backend: "local" });
console.log((await sandbox.exec({ argv: ["echo", "closed by itself"] })).stdout.trim());
`;
const COMMON = `
const { openSandbox } = require("glovebox");
(async () => {
  const sandbox = await openSandbox({ backend: "local" });
  console.log((await sandbox.exec({ argv: ["echo", "from CommonJS"] })).stdout.trim());
  await sandbox.teardown();
})();
`;
/** Copies a directory with a name that is not UTF-8 into a sandbox, then one out of it. */
const NAMES = String.raw`
import { openSandbox } from "glovebox";
const sandbox = await openSandbox({ backend: "local" });
const message = (call) => call.then(() => "copied", (error) => error.message);
console.log("in:", await message(sandbox.refreshFromHost("odd", "odd")));
await sandbox.shell("mkdir -p out/$(printf '\\377A')");
console.log("out:", await message(sandbox.exportDirectory("out", "out")));
await sandbox.teardown();
`;

/** How each check of `glovebox doctor --json` ended, without the runtime's own version. */
function findings(stdout: string): string[] {
  const { sections } = JSON.parse(stdout) as { sections: { findings: { name: string; status: string }[] }[] };
  return sections.flatMap(({ findings }) => findings.map(({ name, status }) => `${name}: ${status}`));
}

for (const runtime of RUNTIMES) {
  const reason =
    process.platform === "linux" ? whyNoRuntime(runtime.program) : "the local backend is confined on Linux only";
  describeUnless(reason, `the installed package on ${runtime.name}`, {}, () => {
    let place: string;
    let cli: string;
    beforeAll(() => {
      const missing = whyNoPackage();
      if (missing !== undefined) throw new Error(missing);
      place = mkdtempSync(join(tmpdir(), "glovebox-runtime-"));
      const modules = join(installPackage().place, "node_modules");
      symlinkSync(modules, join(place, "node_modules"));
      cli = join(modules, "glovebox", "dist", "src", "cli.js");
      // Deno looks there for the names of packages.
      writeFileSync(join(place, "package.json"), JSON.stringify({ dependencies: { glovebox: "*" } }));
      mkdirSync(join(place, "home"));
    }, SET_UP_LIMIT);
    afterAll(() => rmSync(place, { recursive: true, force: true }));

    async function start(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
      const env = { ...process.env, GLOVEBOX_HOME: join(place, "home") };
      const started = promisify(execFile)(runtime.program, args, { cwd: place, env, maxBuffer: 1 << 24 });
      return await started.then((said) => ({ code: 0, ...said })).catch((error) => error);
    }
    const run = (...args: string[]): ReturnType<typeof start> => start(...runtime.args, ...args);
    const runProgram = (name: string, source: string): ReturnType<typeof start> => {
      writeFileSync(join(place, name), source);
      return run(join(place, name));
    };

    test("is the one that is meant", async () => {
      expect((await start("--version")).stdout).toMatch(runtime.version);
    });

    test.concurrent("runs the first program of the readme", async () => {
      const { code, stdout, stderr } = await runProgram("first.mjs", FIRST_PROGRAM);
      expect({ code, stdout, stderr }).toEqual({
        code: 0,
        stdout: expect.stringMatching(/^0 hello from \/.*\n1 cat: \/etc\/shadow: .*\n$/),
        stderr: "",
      });
    });

    test.concurrent("closes a sandbox by await using", async () => {
      expect(await runProgram("using.mjs", USING)).toMatchObject({ code: 0, stdout: "closed by itself\n" });
    });

    test.concurrent("is loaded by require", async () => {
      expect(await runProgram("common.cjs", COMMON)).toMatchObject({ code: 0, stdout: "from CommonJS\n" });
    });

    test.concurrent("runs the commands of the readme", async () => {
      const repository = createRepository(join(place, "repository"));
      const typed = README.commands.filter((command) => /^npx glovebox (?:exec|run)/.test(command));
      const script = typed.map(
        (command) => `( ${command.replace("npx ", "").replace(/ +#.*/, "")} ); echo "ended: $?"`,
      );
      const env = { ...process.env, GLOVEBOX_HOME: join(place, "home") };
      const glovebox = `glovebox() { ${[runtime.program, ...runtime.args, cli].join(" ")} "$@"; }`;
      const lines = ["exec 2>&1", glovebox, ...script].join("\n");
      const { stdout } = await promisify(execFile)("sh", ["-c", lines], { cwd: repository, env });
      expect(stdout).toMatch(
        /^hello\nended: 0\ncat: \/etc\/shadow: No such file or directory\nended: 1\n[\s\S]*working tree clean\nended: 0\n[\s\S]*a\.txt\n[\s\S]*ended: 0\n[\s\S]*SUCCESS in [\s\S]*\nended: 0\n$/,
      );
    });

    test.concurrent("finds on this machine what Node finds", async () => {
      const doctor = [cli, "doctor", "local", "--json"];
      const onNode = await promisify(execFile)(process.execPath, doctor, { cwd: place });
      const { stdout } = await run(...doctor);
      expect(findings(stdout)).toEqual(findings(onNode.stdout));
      if (!runtime.name.startsWith("Node")) expect(stdout).toContain(`, by ${runtime.name} `);
    });

    test.concurrent("copies names of any bytes, or refuses them", async () => {
      mkdirSync(Buffer.concat([Buffer.from(join(place, "odd")), Buffer.from([0x2f, 0xff])]), { recursive: true });
      const { stdout } = await runProgram("names.mjs", NAMES);
      const end = runtime.name === "Deno" ? "Deno can't use a name that is not UTF-8: .*" : "copied";
      expect(stdout).toMatch(new RegExp(`^in: ${end}\nout: ${end}\n$`));
    });

    test.concurrent("passes the conformance kit", async () => {
      const file = join(place, "report.json");
      await run(join(root, "scripts", "run-conformance.mjs"), "required", file, "12");
      const report = JSON.parse(readFileSync(file, "utf8")) as ConformanceReport;
      expect(report.results.filter(({ status }) => status === "failed")).toEqual([]);
      expect(report.passed).toBeGreaterThan(200);
    });
  });
}

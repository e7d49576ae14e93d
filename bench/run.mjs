import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { installDependencies } from "../scripts/prepare.mjs";
import { endAllOnInterrupt, run } from "../scripts/processes.mjs";
import { loadAverage, machineFacts } from "./parts/machine.mjs";
import { formatResult } from "./parts/table.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const all = [
  ...["exec", "exec-heap", "parallel", "flood", "idle", "create", "worktree", "files", "many"],
  ...[
    "overlay",
    "fork",
    "changes",
    "docker",
    "tasks",
    "daytona",
    "harness",
    "agent",
    "cli",
    "ports",
    "listing",
    "reopen",
    "batch",
    "mcp",
    "egress",
    "kubernetes",
  ],
];
const flags = ["--json", "--quick", "--peers"];

const given = process.argv.slice(2);
const names = given.filter((word) => !word.startsWith("--"));
const unknown = given.filter((word) => (word.startsWith("--") ? !flags.includes(word) : !all.includes(word)));
if (unknown.length > 0) {
  console.error(
    `not known: ${unknown.join(" ")}\nusage: npm run bench [name...] [-- ${flags.join(" ")}]\nnames: ${all.join(" ")}`,
  );
  process.exit(2);
}
if (!existsSync(join(here, "..", "dist", "src", "index.js"))) {
  console.error("there is no dist/: type npm run build first");
  process.exit(1);
}

const isJson = given.includes("--json");
const scratch = mkdtempSync(join(tmpdir(), "glovebox-bench-"));
const clean = () => rmSync(scratch, { recursive: true, force: true });
endAllOnInterrupt(clean, 10_000);
let failed = false;
const results = [];
try {
  // Some peers want a newer Node; our own packages' npm setting arrives through the environment.
  if (given.includes("--peers")) await installDependencies(join(here, "peers"), "--no-engine-strict");
  for (const name of names.length > 0 ? names : all) await runOne(name);
} finally {
  clean();
}
if (isJson) console.log(JSON.stringify(results, undefined, 2));
process.exitCode = failed ? 1 : 0;

/** A process for each case, so that the heap of one does not affect the next. */
async function runOne(name) {
  const file = join(scratch, `${name}.json`);
  const folder = join(scratch, name);
  mkdirSync(join(folder, "tmp"), { recursive: true });
  const env = { ...process.env, TMPDIR: join(folder, "tmp"), GLOVEBOX_HOME: join(folder, "home") };
  const load = loadAverage();
  const options = given.filter((word) => word !== "--json" && word.startsWith("--"));
  const { code, output } = await run(process.execPath, [join(here, "run-case.mjs"), name, file, scratch, ...options], {
    env,
    quiet: true,
  });
  const left = readdirSync(join(folder, "tmp"));
  if (code !== 0 || left.length > 0) {
    failed = true;
    console.error(`${name} failed: exit code ${code}, left in its temporary folder: ${left.join(" ") || "nothing"}`);
    console.error(output);
    return;
  }
  const measured = JSON.parse(readFileSync(file, "utf8"));
  const result = { name, quick: given.includes("--quick"), load, machine: machineFacts(), ...measured };
  mkdirSync(join(here, "results"), { recursive: true });
  writeFileSync(join(here, "results", `${name}.json`), `${JSON.stringify(result, undefined, 2)}\n`);
  results.push(result);
  if (!isJson) console.log(`${formatResult(result).join("\n")}\n`);
  rmSync(folder, { recursive: true, force: true });
}

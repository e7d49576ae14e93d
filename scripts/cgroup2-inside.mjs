import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Runs in the machine of `npm run test:cgroup2`, as `root`, as a `user` with delegated groups, or `alone`, without. */
const who = process.argv[2];
process.env.GLOVEBOX_HOME = mkdtempSync(join(tmpdir(), `glovebox-${who}-`));
const { createLocalSandbox, local } = await import("../dist/src/sandbox/local.js");
const { removeSandbox } = await import("../dist/src/sandbox.js");
const { runConformance } = await import("../dist/src/testing.js");

const MIB = 1 << 20;
const limits = local.capabilities().limits;
const wanted = { root: "cpus disk memory pids", user: "cpus memory pids", alone: "pids" }[who];
report(`${who} can enforce ${wanted}`, [...limits].sort().join(" ") === wanted, limits.join(" "));
if (who === "alone") await isRefused({ limits: { memory: 64 * MIB } }, /ordinary user has no control group/);
else for (const isolation of ["required", "none"]) await conform(isolation);
if (limits.includes("memory")) {
  await hasLimits();
  await isGoneAfterKill();
}
report(`${who} leaves no control group`, groups().length === 0, groups().join(" "));
console.log(`done ${who}`);

/** The kit's cases, but for the one that measures CPU time, which emulation distorts. */
async function conform(isolation) {
  const open = (options = {}) => createLocalSandbox(options.id === undefined ? { isolation, ...options } : options);
  const only = ["limits.memory", "limits.pids", "limits.pids-default", "limits.disk", "exec.exit.codes"];
  const { results } = await runConformance({ backend: "local", open, remove: removeSandbox }, { only, concurrency: 1 });
  for (const { id, status, reason = "" } of results) {
    const isExpected =
      status === "passed" || (status === "skipped" && (isolation === "none" || !limits.includes("disk")));
    report(`${who}, isolation ${isolation}: ${id} ${status}`, isExpected, reason);
  }
}

async function isRefused(options, message) {
  const error = await createLocalSandbox(options).then(
    () => undefined,
    (reason) => reason,
  );
  report(
    `${who} is refused ${JSON.stringify(options)}`,
    error?.code === "unsupported" && message.test(error.message),
    error?.message,
  );
}

/** The kernel's own files about the group that the sandbox is in. */
async function hasLimits() {
  const sandbox = await createLocalSandbox({ limits: { memory: 96 * MIB, pids: 60, cpus: 0.5 } });
  const [group = ""] = groups();
  const read = (file) => readFileSync(join(group, file), "utf8").trim();
  const found = ["memory.max", "pids.max", "cpu.max"].map(read).join(", ");
  report(`${who}: the sandbox's group has its limits`, found === `${96 * MIB}, 60, 50000 100000`, found);
  await sandbox.teardown();
}

/** A manager that is killed: its group ends with its processes, or with the next reap. */
async function isGoneAfterKill() {
  const source = `import { createLocalSandbox } from "./dist/src/sandbox/local.js";
    const sandbox = await createLocalSandbox({ limits: { memory: ${64 * MIB} } });
    console.log("open"); setInterval(() => sandbox, 1000);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", source], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await new Promise((resolve) => child.stdout.once("data", resolve));
  const before = groups().length;
  child.kill("SIGKILL");
  await new Promise((resolve) => child.once("close", resolve));
  const { reap } = await import("../dist/src/sandbox.js");
  await reap();
  for (let tries = 0; tries < 100 && groups().length > 0; tries++) execFileSync("sleep", ["0.1"]);
  report(
    `${who}: nothing is left of a killed manager's group`,
    before === 1 && groups().length === 0,
    `${before}, then ${groups()}`,
  );
}

function groups() {
  const root = "/sys/fs/cgroup";
  const found = readdirSync(root, { recursive: true, withFileTypes: true });
  const named = (name, path) => /^glovebox-.+\.scope$/.test(name) || (path.endsWith("/glovebox") && name !== "");
  return found
    .filter((entry) => entry.isDirectory() && named(entry.name, entry.path))
    .map(({ path, name }) => join(path, name));
}

function report(what, isTrue, detail = "") {
  console.log(`${isTrue ? "ok" : "FAILED"} ${what}${isTrue ? "" : ` (${detail})`}`);
}

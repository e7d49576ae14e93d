import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { root } from "./prepare.mjs";
import { endAllOnInterrupt, run } from "./processes.mjs";

/** Runs the conformance kit as an ordinary user, with and without isolation. As root, it uses an unused user id. */
const isRoot = process.getuid?.() === 0;
const uid = isRoot ? await unusedUid() : process.getuid?.();
const place = mkdtempSync(join(tmpdir(), "glovebox-as-user-"));
const home = join(place, "home");
const total = { passed: 0, failed: 0, skipped: [] };
const as = isRoot ? { uid, gid: uid } : {};

endAllOnInterrupt(clean, 1_000);
try {
  layOut();
  const program = isRoot ? reachableNode() : process.execPath;
  const env = {
    PATH: `${dirname(program)}:/usr/local/bin:/usr/bin:/bin`,
    HOME: home,
    TMPDIR: join(home, "tmp"),
    GLOVEBOX_HOME: join(home, "state"),
    LANG: "C.UTF-8",
  };
  for (const isolation of ["required", "none"]) await conform(program, isolation, env);
  countSurvivors();
} finally {
  clean();
}
console.log(`summary: ${JSON.stringify(total)}`);
process.exit(total.failed > 0 ? 1 : 0);

/** Copies the files of an installed package to where the user can read them, and makes a home for the user. */
function layOut() {
  chmodSync(place, 0o755);
  for (const part of ["dist", "guest/bin", "package.json", "scripts/run-conformance.mjs"]) {
    cpSync(join(root, part), join(place, part), { recursive: true });
  }
  for (const folder of [home, join(home, "tmp"), join(home, "state")]) {
    mkdirSync(folder, { mode: 0o700 });
    if (isRoot) chownSync(folder, uid, uid);
  }
}

async function conform(program, isolation, env) {
  const name = `conformance as a user, isolation ${isolation}`;
  if (isolation === "required" && !(await mayUnshare(env))) {
    total.skipped.push({ name, reason: "this system refuses user namespaces to ordinary users" });
    return;
  }
  const file = join(home, `${isolation}.json`);
  const script = join(place, "scripts", "run-conformance.mjs");
  const { code } = await run(program, [script, isolation, file], { ...as, cwd: home, env });
  if (!existsSync(file)) {
    console.log(`FAILED ${name}: no report, exit code ${code}`);
    total.failed += 1;
    return;
  }
  const report = JSON.parse(readFileSync(file, "utf8"));
  total.passed += report.passed;
  total.failed += report.failed;
  for (const { id, status, reason } of report.results) {
    if (status === "skipped") total.skipped.push({ name: `${report.backend}: ${id}`, reason });
  }
}

async function mayUnshare(env) {
  const args = ["--unshare-user", "--unshare-pid", "--ro-bind", "/", "/", "--proc", "/proc", "true"];
  const { code } = await run("bwrap", args, { ...as, cwd: "/", env, quiet: true }).catch(() => ({ code: 1 }));
  return code === 0;
}

/** The user had no processes before, so sandboxes left behind all that are running now. */
function countSurvivors() {
  if (!isRoot) return;
  const survivors = processesOf(uid);
  if (survivors.length === 0) {
    total.passed += 1;
    return;
  }
  total.failed += 1;
  for (const { pid, name } of survivors) {
    console.log(`FAILED still running after all sandboxes are gone: ${name} (${pid})`);
    process.kill(pid, "SIGKILL");
  }
}

function processesOf(owner) {
  const found = [];
  for (const pid of readdirSync("/proc").filter((entry) => /^\d+$/.test(entry))) {
    try {
      const status = readFileSync(`/proc/${pid}/status`, "utf8");
      const isZombie = /^State:\s+Z/m.test(status);
      const name = /^Name:\s+(.*)$/m.exec(status)?.[1];
      if (!isZombie && Number(/^Uid:\s+(\d+)/m.exec(status)?.[1]) === owner) found.push({ pid: Number(pid), name });
    } catch {
      // It ended meanwhile.
    }
  }
  return found;
}

async function unusedUid() {
  const taken = new Set(
    readFileSync("/etc/passwd", "utf8")
      .split("\n")
      .map((line) => Number(line.split(":")[2])),
  );
  const start = Math.floor(Math.random() * 2_000);
  for (let step = 0; step < 2_000; step++) {
    const candidate = 63_000 + ((start + step) % 2_000);
    if (!taken.has(candidate) && (await claim(candidate)) && processesOf(candidate).length === 0) return candidate;
  }
  throw new Error("every user id from 63000 to 64999 is taken");
}

/** Claims a user id until this process ends, so that no other run on this machine uses it and counts our processes. */
function claim(candidate) {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(`\0glovebox-test-user-${candidate}`, () => resolve(true));
    server.unref();
  });
}

/** The running Node, or a copy of it if it is in a folder that only root can enter. */
function reachableNode() {
  let folder = dirname(process.execPath);
  while (folder !== "/" && (statSync(folder).mode & 0o001) !== 0) folder = dirname(folder);
  if (folder === "/") return process.execPath;
  const copy = join(place, "bin", "node");
  cpSync(process.execPath, copy);
  return copy;
}

function clean() {
  rmSync(place, { recursive: true, force: true });
}

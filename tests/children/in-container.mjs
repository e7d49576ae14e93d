// Runs in a container, on the installed package: opens a sandbox, and asks `glovebox doctor`. Prints both as one JSON document.
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, rmSync } from "node:fs";

const [app, workspace] = process.argv.slice(2);
const { openSandbox } = await import(`${app}/node_modules/glovebox/dist/src/index.js`);

const git = (...args) =>
  execFileSync("git", ["-C", "/tmp/repo", "-c", "user.name=a", "-c", "user.email=a@b.c", ...args]);
if (workspace !== undefined) {
  mkdirSync("/tmp/repo");
  git("init", "-q", "-b", "main");
  git("commit", "-q", "--allow-empty", "-m", "first");
}

const SCRIPT = `
  id -u
  grep -hE '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status | tr -d '\\t' | xargs
  for file in $(find /proc -maxdepth 3 -type f -perm -200 -not -path '/proc/[0-9]*' -not -path '/proc/pressure/*' 2>/dev/null); do
    (: >> "$file") 2>/dev/null && echo "writable $file"
  done
  ls /glovebox/proc/1 2>/dev/null
  cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep MARKER
  echo made > file`;

async function look() {
  try {
    const options = workspace === undefined ? {} : { repo: "/tmp/repo", workspace };
    const sandbox = await openSandbox(options);
    const { stdout } = await sandbox.exec({ argv: ["sh", "-c", SCRIPT] });
    const fork = await sandbox.fork();
    const forked = (await fork.exec({ argv: ["cat", "file"] })).stdout;
    const changed = workspace === undefined ? [] : (await sandbox.changes()).files.map(({ path }) => path);
    await fork.teardown();
    await sandbox.teardown();
    return { said: stdout.trimEnd().split("\n"), forked, changed, limits: sandbox.capabilities.limits };
  } catch (error) {
    return { code: error.code, message: error.message, hint: error.hint };
  }
}

const opened = await look();
const cli = `${app}/node_modules/glovebox/dist/src/cli.js`;
const doctor = spawnSync(process.execPath, [cli, "doctor", "--json"], { encoding: "utf8" });
process.stdout.write(JSON.stringify({ opened, doctor: JSON.parse(doctor.stdout || "{}"), exit: doctor.status }));
if (workspace !== undefined) rmSync("/tmp/repo", { recursive: true });

import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Outside nobody can look into it, so what was left there is told, and what is still mounted is a failure, from inside. */
const IN_MEMORY = `place=$1; shift
mount -t tmpfs -o mode=755,size=12g tmpfs "$place" || exit 1
trap : HUP INT TERM
"$@"
code=$?
left=$(ls -A "$place" | grep -vx home | head -n 10 | tr '\\n' ' ')
[ -z "$left" ] || echo "  left behind by tests and removed now: $left"
grep -q " $place/" /proc/self/mountinfo || exit "$code"
echo "  FAILED clean up: something is still mounted below $place"
exit 1`;
const PRIVATE = ["--mount", "--propagation", "private", "sh", "-c", IN_MEMORY, "sh"];

/**
 * A folder for the temporary files and the state of tests. `inMemory` gives a command that sees `memory` as a file system
 * in memory, which no other process does and which is gone with it: on a slow disk tests wait for little else.
 */
export function createScratch() {
  const path = mkdtempSync(join(tmpdir(), "glovebox-test-"));
  const memory = join(path, "memory");
  mkdirSync(memory);
  // Sandboxes of other users work below it.
  for (const each of [path, memory]) chmodSync(each, 0o755);
  return { path, memory, inMemory: (command) => wrap(memory, command), clean: () => clean(path) };
}

/**
 * Where temporary files and state go, for what works in a folder. Certificates of the user's are left out where nothing
 * speaks to a service: each Node that starts would read all of them, which takes longer than the start itself.
 */
export function environmentIn(folder) {
  const { NODE_EXTRA_CA_CERTS, ...rest } = process.env;
  const isLive = ["GLOVEBOX_LIVE", "DAYTONA_API_KEY"].some((name) => process.env[name]);
  return { ...(isLive ? process.env : rest), TMPDIR: folder, GLOVEBOX_HOME: join(folder, "home") };
}

function wrap(memory, command) {
  if (spawnSync("unshare", [...PRIVATE, memory, "true"], { stdio: "ignore" }).status === 0) {
    return ["unshare", ...PRIVATE, memory, ...command];
  }
  console.log("  note   tests work on the disk: a file system in memory cannot be mounted here");
  return command;
}

/** Removes the folder and says what stood in it, unless something is mounted below: that would remove somebody else's files. */
function clean(path) {
  const mounted = existsSync("/proc/self/mountinfo") && readFileSync("/proc/self/mountinfo", "utf8").includes(path);
  if (mounted) throw new Error(`something is still mounted below ${path}`);
  const left = readdirSync(path).filter((name) => !["tally.json", "home", "memory"].includes(name));
  if (left.length > 0) console.log(`\n  left behind by tests and removed now: ${left.slice(0, 10).join(", ")}`);
  // Node's own removal overflows its stack on trees as deep as some tests make them.
  if (existsSync("/bin/rm")) spawnSync("/bin/rm", ["-rf", "--one-file-system", "--", path]);
  else rmSync(path, { recursive: true, force: true });
}

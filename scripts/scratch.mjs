import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Nothing outside can see this file system, so the script itself reports leftovers and fails if something is still mounted. */
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
 * A folder for the temporary files and the state of tests. `inMemory` wraps a command so that `memory` is a file system in
 * memory, which only that command sees and which ends with it: on a slow disk, tests mostly wait for the disk.
 */
export function createScratch() {
  const path = mkdtempSync(join(tmpdir(), "glovebox-test-"));
  const memory = join(path, "memory");
  mkdirSync(memory);
  // Sandboxes of other users need access below it.
  for (const each of [path, memory]) chmodSync(each, 0o755);
  return { path, memory, inMemory: (command) => wrap(memory, command), clean: () => clean(path) };
}

/**
 * Variables that put temporary files and state into a folder. Drops the user's extra certificates if no service is used:
 * every Node process would read them all, which takes longer than its start.
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
  console.log("  note   tests use the disk: this machine can't mount a file system in memory");
  return command;
}

/** Removes the folder and reports what was in it. Refuses if something is mounted below: that could delete other files. */
function clean(path) {
  const mounted = existsSync("/proc/self/mountinfo") && readFileSync("/proc/self/mountinfo", "utf8").includes(path);
  if (mounted) throw new Error(`something is still mounted below ${path}`);
  const left = readdirSync(path).filter((name) => !["tally.json", "home", "memory"].includes(name));
  if (left.length > 0) console.log(`\n  removed files that tests left behind: ${left.slice(0, 10).join(", ")}`);
  // Node's own rm overflows its stack on the deep trees that some tests make.
  if (existsSync("/bin/rm")) spawnSync("/bin/rm", ["-rf", "--one-file-system", "--", path]);
  else rmSync(path, { recursive: true, force: true });
}

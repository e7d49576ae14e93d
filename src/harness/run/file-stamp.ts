import { createHash } from "node:crypto";
import type { Sandbox } from "../../sandbox/types.js";
import { isOutputCheap } from "../backend-facts.js";

/**
 * Names every file with its number, size, mode and the time of its last change, which no program can choose; of the
 * git directory, wherever it lies, only what shows which commits there are. An incomplete look is none, and
 * has something on stderr.
 */
const PLACES = `git=.git
[ ! -f .git ] || read -r _ git < .git
for name in HEAD packed-refs refs; do
  [ ! -e "$git/$name" ] || set -- "$@" "$git/$name"
done
`;
const LIST = `find . "$@" -path ./.git -prune -o -printf '%p %i %s %m %C@\\n'`;
/** BusyBox has no `-printf`, which is much faster. */
const SLOW_LIST = `find . "$@" -path ./.git -prune -o -exec stat -c '%n %i %s %f %z' {} +`;
/** All in one process: for a sandbox whose output is cheap to read. */
const NEAR = `${PLACES}exec ${LIST}`;
const FAR = `${PLACES}{ ${LIST} 2>/dev/null || ${SLOW_LIST} || echo failed >&2; } | cksum`;

const TIMEOUT = 60_000;
/** More than this is never read. */
const MAX_OUTPUT = 4096;
/** Sandboxes in which one process cannot make the list. */
const without = new WeakSet<Sandbox>();

/** Differs between two states of all files in a sandbox, cheaply; undefined where that cannot be found out. */
export async function stampOfFiles(sandbox: Sandbox): Promise<string | undefined> {
  try {
    if (!without.has(sandbox) && (await isOutputCheap(sandbox))) {
      const digest = createHash("sha256");
      const isWhole = await look(sandbox, NEAR, (chunk) => void digest.update(chunk));
      if (isWhole !== undefined) return digest.digest("hex");
      without.add(sandbox);
    }
    const stdout = await look(sandbox, FAR);
    return stdout !== undefined && /^\d+ \d+\s*$/.test(stdout) ? stdout.trim() : undefined;
  } catch {
    // Without a look, everything may have changed.
    return undefined;
  }
}

async function look(
  sandbox: Sandbox,
  script: string,
  onStdout?: (chunk: Uint8Array) => void,
): Promise<string | undefined> {
  const { exitCode, stdout, stderr } = await sandbox.exec({
    argv: ["/bin/sh", "-c", script],
    cwd: sandbox.workDir,
    timeout: TIMEOUT,
    maxOutput: MAX_OUTPUT,
    ...(onStdout && { onStdout }),
  });
  return exitCode === 0 && stderr === "" ? stdout : undefined;
}

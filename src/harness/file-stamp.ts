import type { Sandbox } from "../sandbox/types.js";

/**
 * Names every file with its number, size, mode and the time of its last change, which nothing inside can choose; of the
 * git directory, wherever it lies, only what tells which commits there are. A look that is not complete is none, and
 * has something on stderr. BusyBox has no `-printf`, which is much faster.
 */
const SCRIPT = `git=.git
[ ! -f .git ] || read -r _ git < .git
for name in HEAD packed-refs refs; do
  [ ! -e "$git/$name" ] || set -- "$@" "$git/$name"
done
{
  find . "$@" -path ./.git -prune -o -printf '%p %i %s %m %C@\\n' 2>/dev/null ||
    find . "$@" -path ./.git -prune -o -exec stat -c '%n %i %s %f %z' {} + ||
    echo failed >&2
} | cksum`;

const TIMEOUT = 60_000;

/** What tells two states of all files in a sandbox apart, cheaply; undefined where that cannot be found out. */
export async function stampOfFiles(sandbox: Sandbox): Promise<string | undefined> {
  try {
    const { workDir: cwd } = sandbox;
    const { stdout, stderr } = await sandbox.exec({ argv: ["/bin/sh", "-c", SCRIPT], cwd, timeout: TIMEOUT });
    return stderr === "" && /^\d+ \d+\s*$/.test(stdout) ? stdout.trim() : undefined;
  } catch {
    // Whoever cannot look has to take it that everything has changed.
    return undefined;
  }
}

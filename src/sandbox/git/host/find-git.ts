import { spawnSync } from "node:child_process";
import { realpathSync } from "node:fs";
import { constants } from "node:os";
import { delimiter } from "node:path";
import { SandboxError } from "../../../../contracts/errors.js";
import { installLine } from "../../../machine/install-line.js";
import { findProgram, isProgram, trustedDirectories } from "../../../machine/trusted-programs.js";
import { isWithin } from "../../../util/repository-of.js";
import { guestBinary } from "../../guest.js";

/** The git to run on the host, and the PATH for it and its children. */
export interface GitProgram {
  readonly program: string;
  readonly path: string;
  /** The command to start it with. */
  readonly launcher: Launcher;
}

/** Prefixes of a command line, which start the command that follows. */
export interface Launcher {
  /** For a git that finishes even when this process is killed. */
  readonly finishing: readonly string[];
  /** For a git that ends with this process. */
  readonly ending: readonly string[];
}

let found: (GitProgram & { readonly from: string }) | undefined;

/** Finds git in PATH, without directories that others may have put there: relative ones, ones below the current one, `node_modules/.bin`. */
export function findGit(): GitProgram {
  const from = process.env["PATH"] ?? "";
  if (found?.from === from) return found;
  const directories = trustedDirectories(from);
  const program = findProgram(process.platform === "win32" ? "git.exe" : "git", directories);
  if (program === undefined) {
    throw new SandboxError("missing_dependency", "git was not found in PATH", { hint: installLine("git") });
  }
  found = { program, path: directories.join(delimiter), launcher: findLauncher(), from };
  return found;
}

/** PATH without the directories that somebody else may have put there. */
export function trustedPath(): string {
  return findGit().path;
}

/** Refuses a git that lies in the repository it would run on. */
export function assertOutside(program: string, repository: string): void {
  if (!isWithin(realpathSync(program), repository)) return;
  throw new SandboxError("permission_denied", `git was found inside the repository: ${program}`, {
    hint: "Remove that directory from PATH.",
  });
}

/** Git must not start after this process has died: the next one may have cleaned up the repository already. */
function findLauncher(): Launcher {
  if (process.platform === "win32") return { finishing: [], ending: [] };
  const guest = findGuest();
  if (guest !== undefined) {
    const start = (signal: number): string[] => [guest, "exec-with-parent", String(process.pid), String(signal)];
    return { finishing: start(0), ending: start(constants.signals.SIGTERM) };
  }
  const check = '[ "$PPID" = "$1" ] || exit 125; shift; exec "$@"';
  const finishing = ["/bin/sh", "-c", check, "git", String(process.pid)];
  const ending = ["/usr/bin/setpriv", "--pdeathsig", "TERM", "--", ...finishing];
  if (process.platform !== "linux" || !isProgram("/usr/bin/setpriv")) return { finishing, ending: finishing };
  const trial = spawnSync("/usr/bin/setpriv", [...ending.slice(1), "/bin/true"], { stdio: "ignore", env: {} });
  return { finishing, ending: trial.status === 0 ? ending : finishing };
}

/** Undefined on other systems, and in a checkout without a build. */
function findGuest(): string | undefined {
  try {
    return process.platform === "linux" ? guestBinary() : undefined;
  } catch {
    return undefined;
  }
}

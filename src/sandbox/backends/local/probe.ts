import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { release } from "node:os";
import { toSandboxError } from "../../../../contracts/errors.js";
import type { Finding } from "../../../../contracts/finding.js";
import type { Capabilities } from "../../../../contracts/types.js";
import { installLine } from "../../../machine/install-line.js";
import { standing } from "../../../machine/standing.js";
import { findGit } from "../../git.js";
import { guestBinary } from "../../guest.js";
import { findBwrap } from "../../jail.js";
import { DEFAULT_PIDS, whyRefused } from "./limits.js";
import { containerFindings } from "./probe-container.js";
import { type OpenLocal, probeIsolation } from "./probe-isolation.js";
import { namespaceFinding } from "./probe-namespaces.js";
import { renamesIn } from "./renames.js";

const UNTRIED_LIMITS: Finding = { name: "limits", status: "unused", detail: "not tested: no sandbox opens here" };

/** Checks everything that the local backend needs on this machine; isolation is tested by opening real sandboxes. */
export async function probeLocal(open: OpenLocal, limits: Capabilities["limits"]): Promise<Finding[]> {
  if (process.platform !== "linux") {
    const fix = "use the docker backend: --backend docker";
    return [{ name: "system", status: "missing", detail: `${process.platform}: isolation needs Linux`, fix }];
  }
  const isolation = await probeIsolation(open);
  const opens = isolation.some(({ name, status }) => name === "self-test" && status === "ok");
  return [
    { name: "system", status: "ok", detail: `Linux ${release()}, ${process.arch}` },
    namespaceFinding((path) => readSetting(path), standing() === "root"),
    ...containerFindings(opens),
    attempt("bubblewrap", () => versionOf(findBwrap()), installLine("bubblewrap")),
    attempt("guest", () => `${guestBinary()}`, "npm run build"),
    attempt("git", () => versionOf(findGit().program), installLine("git")),
    ...isolation,
    opens || limits.length === 0 ? await limitsFinding(open, limits) : UNTRIED_LIMITS,
    overlayFinding(release(), readSetting("/proc/filesystems"), standing() === "root"),
  ];
}

/** Git is only needed for `repo`, but there it is required. */
function attempt(name: string, look: () => string, fix: string): Finding {
  try {
    return { name, status: "ok", detail: look() };
  } catch (error) {
    const { message, hint } = toSandboxError(error);
    return { name, status: name === "git" ? "limited" : "missing", detail: message, fix: hint ?? fix };
  }
}

function versionOf(program: string): string {
  const text = execFileSync(program, ["--version"], {
    encoding: "utf8",
    env: { LC_ALL: "C" },
    timeout: 10_000,
    stdio: ["ignore", "pipe", "ignore"],
  });
  return `${/\d+(?:\.\d+)+/.exec(text)?.[0] ?? "of unknown version"} in ${program}`;
}

/** Tests the limits by opening a sandbox with all that can be enforced. */
async function limitsFinding(open: OpenLocal, limits: Capabilities["limits"]): Promise<Finding> {
  const name = "limits";
  const lacking = (["memory", "cpus", "pids"] as const).filter((limit) => !limits.includes(limit));
  try {
    const asked = { memory: 256 << 20, cpus: 1, pids: 64, disk: 64 << 20 };
    if (limits.length > 0) {
      await using sandbox = await open({ limits: Object.fromEntries(limits.map((limit) => [limit, asked[limit]])) });
      await sandbox.exec({ argv: ["true"], timeout: 10_000 });
    }
  } catch (error) {
    const { message, hint } = toSandboxError(error);
    const detail = `can't open a sandbox with limits: ${message}`;
    return { name, status: "limited", detail, fix: hint ?? "mount /sys/fs/cgroup writable" };
  }
  const enforced = limits.join(", ") || "none";
  const detail = limits.includes("pids") ? `${enforced}; ${DEFAULT_PIDS} processes unless --pids is set` : enforced;
  const [first] = lacking;
  if (first === undefined) return { name, status: "ok", detail };
  const { reason, hint } = whyRefused(first);
  const flags = lacking.map((limit) => `--${limit}`).join(" and ");
  const refused = `${flags} ${lacking.length > 1 ? "are" : "is"} refused: ${reason}`;
  return { name, status: "limited", detail: `${detail}; ${refused}`, fix: hint };
}

/** Whether `workspace: "overlay"` works here, and what can't be renamed in it. */
export function overlayFinding(linux: string, filesystems: string | undefined, isRoot: boolean): Finding {
  const name = "overlay";
  const [major = 0, minor = 0] = linux.split(".").map(Number);
  // Linux 5.11 added overlays in user namespaces.
  if (major < 5 || (major === 5 && minor < 11)) {
    const detail = `Linux ${linux} has none in user namespaces; use --workspace worktree or copy`;
    return { name, status: "limited", detail, fix: "use Linux 5.11 or later" };
  }
  if (filesystems?.includes("\toverlay\n") !== true) {
    const detail = "not loaded, so --workspace overlay fails";
    return { name, status: "limited", detail, fix: "sudo modprobe overlay" };
  }
  if (renamesIn("overlay", isRoot) === "all") {
    return { name, status: "ok", detail: "available, for --workspace overlay" };
  }
  const detail = "in --workspace overlay rename(2) of a checked-out directory fails with EXDEV; mv works";
  return { name, status: "limited", detail, fix: "use --workspace copy where that matters" };
}

function readSetting(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

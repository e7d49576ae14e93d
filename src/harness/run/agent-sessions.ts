import { SandboxError } from "../../../contracts/errors.js";
import type { Sandbox } from "../../sandbox/types.js";
import type { AgentNeed } from "../needs.js";
import type { AgentDriver, NodeReport } from "../types.js";

/** Bytes of an archive that are written down; a session is text, so this is a long one. */
const LARGEST = 64 * 1024 * 1024;
const TIMEOUT = 60_000;
/** Packs the folders and files that are there. Where none is, the archive is empty. */
const PACK =
  'cd "$HOME" || exit; for name; do shift; [ -e "$name" ] && set -- "$@" "$name"; done; [ $# = 0 ] || tar -cf - -- "$@"';
const UNPACK = 'cd "$HOME" && tar -xf -';

/** The folders and files below HOME that have the sessions of these agents. */
export function sessionFoldersOf(agents: readonly AgentNeed[]): string[] {
  return [...new Set(agents.flatMap(({ driver }) => driver.sessionFolders ?? []))];
}

/** Whether an agent finds a session that was brought back. */
export function canContinue({ sessionFolders, sessionsOfWorkDir = false }: AgentDriver, isSamePlace: boolean): boolean {
  return sessionFolders !== undefined && (isSamePlace || !sessionsOfWorkDir);
}

/** Whether a node has a session that a later one may continue. */
export function hasSession({ agent, children = [] }: NodeReport): boolean {
  return agent?.sessionId !== undefined || children.some(hasSession);
}

/** The sessions of agents, which are in HOME and gone with the sandbox, as an archive. Only a sandbox ever unpacks it. */
export async function packSessions(sandbox: Sandbox, folders: readonly string[]): Promise<Uint8Array> {
  const argv = ["/bin/sh", "-c", PACK, "sh", ...folders];
  const result = await sandbox.exec({ argv, timeout: TIMEOUT, raw: true, maxOutput: LARGEST });
  if (result.truncated.stdout) {
    throw new SandboxError("limit_exceeded", `the sessions of its agents are larger than ${LARGEST} bytes`);
  }
  if (result.exitCode === 0 && result.raw !== undefined) return result.raw.stdout;
  throw new SandboxError("unavailable", `the sessions of its agents can't be packed: ${result.stderr.trim()}`);
}

/** Puts the sessions of agents into the HOME of a sandbox. */
export async function unpackSessions(sandbox: Sandbox, archive: Uint8Array): Promise<void> {
  if (archive.length === 0) return;
  const argv = ["/bin/sh", "-c", UNPACK];
  const { exitCode, stderr } = await sandbox.exec({ argv, timeout: TIMEOUT, stdin: archive });
  if (exitCode === 0) return;
  throw new SandboxError("unavailable", `the sessions of its agents can't be unpacked: ${stderr.trim()}`);
}

import { SandboxError } from "../../../contracts/errors.js";
import type { Sandbox } from "../../sandbox/types.js";
import { secretForms } from "../../util/secret-forms.js";
import type { AgentNeed } from "../needs.js";
import type { AgentDriver, NodeReport } from "../types.js";

/** Bytes of an archive that are written down; a session is text, so this is a long one. */
const LARGEST = 64 * 1024 * 1024;
/** A shorter value may be in anything. */
const SHORTEST_SECRET = 8;
const FILLER = "*".charCodeAt(0);
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

/**
 * The sessions of agents, which are in HOME and gone with the sandbox, as an archive. Only a sandbox ever unpacks it. What an agent has seen of
 * `secrets` is made unreadable in it.
 */
export async function packSessions(
  sandbox: Sandbox,
  folders: readonly string[],
  secrets: readonly string[] = [],
): Promise<Uint8Array> {
  const argv = ["/bin/sh", "-c", PACK, "sh", ...folders];
  const result = await sandbox.exec({ argv, timeout: TIMEOUT, raw: true, maxOutput: LARGEST });
  if (result.truncated.stdout) {
    throw new SandboxError("limit_exceeded", `the sessions of its agents are larger than ${LARGEST} bytes`);
  }
  if (result.exitCode !== 0 || result.raw === undefined) {
    throw new SandboxError("unavailable", `the sessions of its agents can't be packed: ${result.stderr.trim()}`);
  }
  const archive = Buffer.from(result.raw.stdout);
  if (blankOut(archive, secrets) && folders.some((path) => path.endsWith("-wal"))) {
    throw new SandboxError("unsupported", "they have a secret, without which a database could not be read");
  }
  return archive;
}

/** Fills the places of secrets; the length stays, and with it the form of archive and files. Says whether there was one. */
function blankOut(bytes: Buffer, secrets: readonly string[]): boolean {
  const forms = secrets.filter(({ length }) => length >= SHORTEST_SECRET).flatMap(secretForms);
  const found = forms.map((form) => Buffer.from(form)).filter((form) => bytes.includes(form));
  if (found.length === 0) return false;
  // A secret may overlap another one, so all are found before anything is filled.
  const isSecret = Buffer.alloc(bytes.length);
  for (const form of found) {
    for (let at = bytes.indexOf(form); at !== -1; at = bytes.indexOf(form, at + 1)) {
      isSecret.fill(1, at, at + form.length);
    }
  }
  for (let at = 0; at < bytes.length; at += 1) if (isSecret[at] === 1) bytes[at] = FILLER;
  return true;
}

/** Puts the sessions of agents into the HOME of a sandbox. */
export async function unpackSessions(sandbox: Sandbox, archive: Uint8Array): Promise<void> {
  if (archive.length === 0) return;
  const argv = ["/bin/sh", "-c", UNPACK];
  const { exitCode, stderr } = await sandbox.exec({ argv, timeout: TIMEOUT, stdin: archive });
  if (exitCode === 0) return;
  throw new SandboxError("unavailable", `the sessions of its agents can't be unpacked: ${stderr.trim()}`);
}

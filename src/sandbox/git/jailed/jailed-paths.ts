import { SandboxError } from "../../../../contracts/errors.js";
import { gitError } from "../host.js";

/** Runs jailed git; text is one character per byte. */
export type Jailed = (
  args: string[],
  stdin?: string,
  env?: Readonly<Record<string, string>>,
) => Promise<{ exitCode: number; text: string; stderr: string }>;

/** The parent and the message of a commit. */
export interface CommitDetails {
  parent: string | undefined;
  message: string;
}

const NO_COMMIT = /^error: '(.*?)\/?' does not have a commit checked out$/;
/** A pipe or the like in the place of a file of the index. */
const NO_FILE = /^error: ([^\ufffd]*): can only add regular files, symbolic links or git-directories$/;
/** The mode of a submodule. */
export const GITLINK = "160000";
const FROM_STDIN = ["--pathspec-from-file=-", "--pathspec-file-nul"];
/** In the store: an index of the given paths only. */
const FEW = { GIT_INDEX_FILE: "/gd/few" };
/** In the store: an index of those paths in the base. */
const BEFORE = { GIT_INDEX_FILE: "/gd/few-before" };

/** Commits the base with the given paths as they are now, without an index of all files and without a walk over them. */
export async function commitPaths(
  jailed: Jailed,
  paths: Uint8Array,
  base: string,
  { parent = base, message }: CommitDetails,
): Promise<{ commit: string; nested: string[] }> {
  const listed = latin1(paths);
  const isSame = listed === "";
  if (!isSame) await fillIndex(jailed, listed, base, FEW);
  const unborn = await addAll(jailed, paths, FEW);
  const { kept, changed } = isSame ? NONE : await withLinksOfBase(jailed, listed, base);
  const lines = [
    "commit refs/heads/snapshot\nmark :1\ncommitter Glovebox <glovebox@localhost> now",
    `data ${Buffer.byteLength(message)}\n${latin1(Buffer.from(message))}`,
    `from ${parent}`,
    ...(parent === base ? [] : [`M 040000 ${hash(await must(jailed, ["rev-parse", `${base}^{tree}`]))} ""`]),
    ...listed
      .split("\0")
      .filter(Boolean)
      .map((path) => `D ${quote(path)}`),
    ...kept.map(({ mode, id, path }) => `M ${mode} ${id} ${quote(path)}`),
    "\nget-mark :1\n",
  ];
  const commit = hash(await must(jailed, ["fast-import", "--quiet", "--date-format=now"], lines.join("\n")));
  return { commit, nested: [...unborn, ...changed] };
}

/** Makes an index of a commit's entries at or below the paths. */
async function fillIndex(jailed: Jailed, listed: string, base: string, env: typeof FEW): Promise<void> {
  await must(jailed, ["--literal-pathspecs", "reset", "-q", ...FROM_STDIN, base], listed, env);
}

/** What was added, with submodules as they are in the base: the commits that they name would be missing. */
async function withLinksOfBase(jailed: Jailed, listed: string, base: string): Promise<typeof NONE> {
  const entries = await readIndex(jailed, FEW);
  if (!entries.some(isLink)) return { kept: entries, changed: [] };
  await fillIndex(jailed, listed, base, BEFORE);
  const before = new Map((await readIndex(jailed, BEFORE)).filter(isLink).map((entry) => [entry.path, entry]));
  const isChanged = (entry: StageEntry): boolean => isLink(entry) && entry.id !== before.get(entry.path)?.id;
  const kept = entries.map((entry) => (isChanged(entry) ? before.get(entry.path) : entry));
  const changed = entries.filter(isChanged).map(({ path }) => Buffer.from(path, "latin1").toString());
  return { kept: kept.filter((entry) => entry !== undefined), changed };
}

interface StageEntry {
  mode: string;
  id: string;
  path: string;
}

const NONE: { kept: StageEntry[]; changed: string[] } = { kept: [], changed: [] };

async function readIndex(jailed: Jailed, env: typeof FEW): Promise<StageEntry[]> {
  const listing = await must(jailed, ["ls-files", "--stage", "-z"], undefined, env);
  return listing.split("\0").flatMap((line) => {
    const [, mode = "", id = "", path = ""] = /^(\d+) ([0-9a-f]+) \d\t(.+)$/s.exec(line) ?? [];
    return path === "" ? [] : [{ mode, id, path }];
  });
}

function isLink({ mode }: StageEntry): boolean {
  return mode === GITLINK;
}

/** Quotes a path of any bytes for `git fast-import`. */
function quote(path: string): string {
  const escaped = (char: string): string => `\\${char.charCodeAt(0).toString(8).padStart(3, "0")}`;
  return `"${path.replace(/["\\]|[^ -~]/g, escaped)}"`;
}

function latin1(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("latin1");
}

/** Runs jailed git and returns its output; throws a typed error when it fails. */
export async function must(jailed: Jailed, args: string[], stdin?: string, env?: typeof FEW): Promise<string> {
  const result = await jailed(args, stdin, env);
  if (result.exitCode === 0) return result.text;
  throw gitError(args, { exitCode: result.exitCode, stdout: "", stderr: result.stderr });
}

/** Adds every file, or the given paths. Returns nested repositories without a commit, which git can't add. */
export async function addAll(jailed: Jailed, paths: Uint8Array | undefined, env?: typeof FEW): Promise<string[]> {
  if (paths?.length === 0) return [];
  const args = [
    ...(paths === undefined ? [] : ["--literal-pathspecs"]),
    ...["add", "--all", "--ignore-errors", ...(paths === undefined ? ["--", ":/"] : FROM_STDIN)],
  ];
  const result = await jailed(args, paths && latin1(paths), env);
  if (result.exitCode === 0) return [];
  const complaints = result.stderr.split("\n").filter((line) => /^(error|fatal):/.test(line));
  const other = complaints.filter((line) => !NO_COMMIT.test(line) && !NO_FILE.test(line));
  // Git also skips ignored paths that are named, with a message that is no error.
  const isKnown = other.length === 0 && (complaints.length > 0 || paths !== undefined);
  if (result.exitCode !== 1 || !isKnown) {
    throw gitError(args, { exitCode: result.exitCode, stdout: "", stderr: other.join("\n") || result.stderr });
  }
  const named = (pattern: RegExp): string[] => complaints.flatMap((line) => pattern.exec(line)?.[1] ?? []);
  const gone = named(NO_FILE).map((path) => `${Buffer.from(path).toString("latin1")}\0`);
  if (gone.length > 0) await must(jailed, ["update-index", "-z", "--force-remove", "--stdin"], gone.join(""), env);
  return named(NO_COMMIT);
}

/** Checks an object id that came from a jail. */
export function hash(text: string): string {
  const found = text.trim();
  if (/^([0-9a-f]{40}|[0-9a-f]{64})$/.test(found)) return found;
  throw new SandboxError("tampered", "The jail did not answer with an object id");
}

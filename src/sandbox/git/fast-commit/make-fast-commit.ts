import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { isBranchName } from "../../../util/git/branch-name.js";
import type { SandboxHead } from "../live-tree.js";
import { readRefFile } from "../repository.js";
import type { TreeBase } from "../source.js";
import { at, type BaseDirectory, readBaseDirectories } from "./base-directories.js";
import { type Gathered, type GatherOptions, gatherChanges } from "./gather-changes.js";
import { DIRECTORY, type GitObject, gitObject } from "./git-object.js";
import { mayBeIgnored } from "./may-be-ignored.js";
import { readStorageSettings, type StorageSettings } from "./storage-settings.js";
import { isOrdinaryPath, isStoredAsIs } from "./stored-as-is.js";
import { directoriesOf, isReplaced, splitPath, treeWithChanges } from "./tree-with-changes.js";

/** A commit of a sandbox's files that was made without git. Its objects are not stored yet. */
export interface FastCommit {
  readonly commit: string;
  /** Whether its files are the same as in the base. */
  readonly isUnchanged: boolean;
  readonly head?: SandboxHead;
  /** Without those of the base. */
  readonly objects: readonly GitObject[];
  /** Symbolic links that are new or changed. */
  readonly links: readonly { readonly path: string; readonly target: string }[];
}

/** What `makeFastCommit` needs. */
export interface FastCommitOptions extends Pick<GatherOptions, "root" | "sandboxGit" | "runGuest"> {
  base: TreeBase;
  /** The tree object of the base. */
  tree: string;
  /** The parent, a commit of the source, if there is no `sandboxGit`. Default: the base. */
  parent?: string | undefined;
  message: string;
}

const AUTHOR = "Glovebox <glovebox@localhost>";
const SHA = /^([0-9a-f]{40}|[0-9a-f]{64})$/;

/** Makes the commit that jailed git would make, without git; undefined when anything in the changes has a meaning to git. */
export async function makeFastCommit(opts: FastCommitOptions): Promise<FastCommit | undefined> {
  const { base, root, tree, sandboxGit, runGuest, message } = opts;
  const { repository, index } = base;
  if (index === undefined) return undefined;
  const [gathered, settings, exclude, attributes] = await Promise.all([
    gatherChanges({ root, index, tree, sandboxGit, runGuest }),
    readStorageSettings(repository),
    readText(join(repository.gitDir, "info", "exclude")),
    readText(join(repository.gitDir, "info", "attributes")),
  ]);
  if (gathered === undefined || settings === undefined) return undefined;
  const head = await findHead(base, gathered.head);
  if (sandboxGit !== undefined && head === undefined) return undefined;
  const directories = new Set(["", ...gathered.paths.flatMap(directoriesOf)]);
  const known = await readBaseDirectories(base, directories);
  if (known === undefined || !isOrdinary(gathered, { known, settings, exclude, attributes })) return undefined;
  const made = treeWithChanges(known, gathered, repository.objectFormat);
  if (made === undefined) return undefined;
  const parent = head?.sha ?? opts.parent ?? base.sha;
  const when = `${AUTHOR} ${Math.floor(Date.now() / 1000)} +0000`;
  const text = `tree ${made.tree}\nparent ${parent}\nauthor ${when}\ncommitter ${when}\n\n${message}\n`;
  const commit = gitObject("commit", Buffer.from(text), repository.objectFormat);
  const links = gathered.files
    .filter(({ mode, path }) => mode === "120000" && made.changed.has(path))
    .map(({ path, content }) => ({ path: Buffer.from(path, "latin1").toString(), target: content.toString() }));
  const objects = [...made.objects.filter(({ id }) => id !== tree), commit];
  return { commit: commit.id, isUnchanged: made.tree === tree, ...(head && { head }), objects, links };
}

interface Surroundings {
  readonly known: ReadonlyMap<string, BaseDirectory>;
  readonly settings: StorageSettings;
  /** Of the repository, in addition to the files in its directories. */
  readonly exclude: string;
  readonly attributes: string;
}

function isOrdinary(gathered: Gathered, { known, settings, exclude, attributes }: Surroundings): boolean {
  const named = new Set(gathered.paths);
  const files = new Map(gathered.files.map((file) => [file.path, file]));
  /** The content of all files of a name in the directories of a path. */
  const rulesFor = (path: string, name: string, field: "ignore" | "attributes"): string =>
    directoriesOf(path)
      .map((directory) => {
        const place = at(directory, name);
        if (!isReplaced(place, named)) return known.get(directory)?.[field] ?? "";
        return files.get(place)?.content.toString("latin1") ?? "";
      })
      .filter(Boolean)
      .join("\n");
  return gathered.files.every((file) => {
    const { path } = file;
    if (!isOrdinaryPath(path)) return false;
    if (!isStoredAsIs(file, attributes + rulesFor(path, ".gitattributes", "attributes"), settings)) return false;
    const [parent, name] = splitPath(path);
    const before = isReplaced(parent, named) ? undefined : known.get(parent)?.entries.get(name);
    const isTracked = before !== undefined && before.mode !== DIRECTORY;
    return isTracked || !mayBeIgnored(path, `${exclude}\n${rulesFor(path, ".gitignore", "ignore")}`);
  });
}

const trusted = new WeakMap<TreeBase, Map<string, { ref: string; commit: string }>>();

/** Remembers that a commit of the sandbox was checked, and is in the source while a ref stays where it is. */
export function trustHead(base: TreeBase, head: SandboxHead, held: { ref: string; commit: string }): void {
  const heads = trusted.get(base) ?? new Map<string, { ref: string; commit: string }>();
  trusted.set(base, heads);
  heads.set(head.sha, held);
}

/** What is checked out in the sandbox git, if that is the base or was checked before. */
async function findHead(base: TreeBase, found: Gathered["head"]): Promise<SandboxHead | undefined> {
  if (found === undefined || !SHA.test(found.commit)) return undefined;
  const sha = found.commit;
  const held = sha === base.sha ? undefined : trusted.get(base)?.get(sha);
  if (sha !== base.sha && held === undefined) return undefined;
  if (held !== undefined && (await readRefFile(base.repository.gitDir, held.ref)) !== held.commit) return undefined;
  const [, branch] = /^ref: refs\/heads\/(.+)$/.exec(found.line) ?? [];
  return isBranchName(branch) ? { sha, branch } : { sha };
}

async function readText(path: string): Promise<string> {
  return await readFile(path, "latin1").catch(() => "");
}

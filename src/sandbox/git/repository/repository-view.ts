import { createHash, randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, readlink, rename, stat, symlink, utimes, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { privateSubdirectory } from "../../../machine/home.js";
import { isTagDead, ownerTag } from "../../../machine/owner.js";
import { removeOwnTree } from "../../../machine/remove-tree.js";
import { formatConfig } from "./git-directory.js";
import { checkLayout } from "./repository-layout.js";
import { type RepositorySettings, readCheckoutSettings, readRepositorySettings } from "./repository-settings.js";
import { readUntrustedFile } from "./untrusted-file.js";

/** What a view shares with its source. */
const SHARED = ["objects", "refs", "logs", "worktrees", "packed-refs", "shallow"];
const FILES: ReadonlySet<string> = new Set(["packed-refs", "shallow"]);
/** What a view has a copy of. */
const COPIED = ["info/attributes", "info/exclude"];
/** No branch can have this name, so no change of a branch changes the HEAD of the view. */
const NO_HEAD = "ref: refs/heads/.glovebox\n";

const DRAFT = ".new.";
const UNUSED_AFTER = 30 * 24 * 3_600_000;

const touched = new Set<string>();

/**
 * The view of a source: a git directory of ours with the source's objects, refs and logs, and none of its settings, hooks, filters or
 * remotes. Git obeys the configuration of the directory that it is given, and a source may come from anywhere.
 *
 * A view has no HEAD of its own: `resolveCommit` reads that of the source.
 */
export async function openView(gitDir: string): Promise<string> {
  checkLayout(gitDir);
  const parts = await partsOf(gitDir);
  const root = privateSubdirectory("views");
  const path = join(root, nameOf(parts));
  if (touched.size === 0) await sweepViews(root);
  // An older view may be damaged, for example by a power loss.
  if (!touched.has(path) && existsSync(path) && !(await isWhole(path, parts))) await removeOwnTree(path);
  if (!existsSync(path)) await makeView(path, parts);
  else if (!touched.has(path)) await touch(path);
  touched.add(path);
  return path;
}

/** The files and links of a view. */
interface Parts {
  readonly files: ReadonlyMap<string, Buffer>;
  /** Targets by name. */
  readonly links: ReadonlyMap<string, string>;
}

async function partsOf(gitDir: string): Promise<Parts> {
  const settings = await readRepositorySettings(gitDir);
  const config = configOf(settings, await readCheckoutSettings({ gitDir }));
  const copies = COPIED.map((name) => [name, readUntrustedFile(join(gitDir, name)) ?? Buffer.alloc(0)] as const);
  const shared = [...SHARED, ...(settings.refStorage === "reftable" ? ["reftable"] : [])];
  return {
    files: new Map([["HEAD", Buffer.from(NO_HEAD)], ["config", Buffer.from(config)], ...copies]),
    links: new Map(shared.map((name) => [name, join(gitDir, name)])),
  };
}

function nameOf({ files, links }: Parts): string {
  const digest = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");
  const content = [[...files].map(([name, bytes]) => [name, digest(bytes)]), [...links]];
  return digest(Buffer.from(JSON.stringify(content))).slice(0, 32);
}

async function isWhole(path: string, { files, links }: Parts): Promise<boolean> {
  const hasFile = async ([name, bytes]: [string, Buffer]): Promise<boolean> =>
    bytes.equals(await readFile(join(path, name)));
  const hasLink = async ([name, target]: [string, string]): Promise<boolean> =>
    target === (await readlink(join(path, name)));
  const found = await Promise.all([...[...files].map(hasFile), ...[...links].map(hasLink)]).catch(() => [false]);
  return found.every(Boolean);
}

async function makeView(path: string, { files, links }: Parts): Promise<void> {
  const draft = join(dirname(path), `${DRAFT}${ownerTag()}.${randomBytes(6).toString("hex")}`);
  try {
    await mkdir(join(draft, "info"), { recursive: true, mode: 0o700 });
    for (const [name, content] of files) await writeFile(join(draft, name), content, { mode: 0o600 });
    for (const [name, target] of links) {
      await symlink(target, join(draft, name), FILES.has(name) ? "file" : "junction");
    }
    await rename(draft, path);
  } catch (error) {
    await removeOwnTree(draft);
    // Another process may have made the same view meanwhile.
    if (!existsSync(path)) throw error;
  }
}

function configOf(settings: RepositorySettings, core: Readonly<Record<string, string>>): string {
  const { objectFormat, refStorage, sharing } = settings;
  const isPlain = objectFormat === "sha1" && refStorage === "files";
  const extensions = {
    ...(objectFormat === "sha256" && { objectformat: "sha256" }),
    ...(refStorage === "reftable" && { refstorage: "reftable" }),
  };
  return formatConfig({
    core: {
      logallrefupdates: "true",
      ...core,
      ...sharing,
      repositoryformatversion: isPlain ? "0" : "1",
      bare: "false",
    },
    ...(!isPlain && { extensions }),
  });
}

async function touch(path: string): Promise<void> {
  const now = new Date();
  await utimes(path, now, now);
}

/** Removes the views of sources that are gone, views that nobody has opened for long, and drafts of dead processes. */
async function sweepViews(root: string): Promise<void> {
  for (const name of await readdir(root)) {
    const path = join(root, name);
    const found = await stat(path).catch(() => undefined);
    const isOld = found !== undefined && Date.now() - found.mtimeMs > UNUSED_AFTER;
    const objects = await readlink(join(path, "objects")).catch(() => undefined);
    const isGone = objects !== undefined && !existsSync(objects);
    const isLeft = name.startsWith(DRAFT) && isTagDead(name.split(".")[2] ?? "");
    if (isOld || isGone || isLeft) await removeOwnTree(path);
  }
}

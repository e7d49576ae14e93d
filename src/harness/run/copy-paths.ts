import { lstatSync, readlinkSync } from "node:fs";
import { dirname, join, posix, resolve } from "node:path";
import { SandboxError } from "../../../contracts/errors.js";
import { runRepositoryGit } from "../../sandbox/host.js";
import type { Sandbox } from "../../sandbox/types.js";
import { openBeneath, readRegularFile } from "../../util/beneath.js";
import type { SourceRepository } from "../store.js";

/** Files of this name hold secrets, wherever they are. */
const SECRET = /^\.env/i;
const NEVER = [".git", ".glovebox"];
const MAX_FILE_BYTES = 256 << 20;
const MOST_NAMED = 5;

/** Checks the paths that are to be copied in: ignored ones in the working tree, and nothing that may hold secrets. */
export async function checkCopies(
  paths: readonly string[],
  { topLevel, gitDir }: Pick<SourceRepository, "topLevel" | "gitDir">,
): Promise<string[]> {
  const names = [...new Set(paths.map(toName))];
  if (names.length === 0) return [];
  if (topLevel === undefined || gitDir === undefined) {
    throw refused(names[0] ?? "", "the repository has no working tree on this machine");
  }
  for (const name of names) {
    if (kindOf(topLevel, name) === undefined) throw new SandboxError("not_found", `There is no ${name} in ${topLevel}`);
    const { exitCode } = await runRepositoryGit(["check-ignore", "--quiet", "--no-index", "--", name], gitDir, {
      workTree: topLevel,
    });
    if (exitCode !== 0) throw refused(name, "git does not ignore it, so it would become part of the changes");
  }
  return names;
}

/** Copies checked paths into a sandbox, as files of its own. Links stay links; those that lead out of the repository are left out. */
export async function copyPaths(
  sandbox: Sandbox,
  names: readonly string[],
  topLevel: string,
  warn: (message: string) => void,
): Promise<void> {
  const leftOut: string[] = [];
  for (const name of names) {
    const kind = kindOf(topLevel, name);
    if (kind === "file") {
      using folder = openBeneath(topLevel, foldersOf(name));
      const path = folder.at(posix.basename(name));
      const content = readRegularFile(path, MAX_FILE_BYTES, name);
      await sandbox.writeFile(name, content, { mode: lstatSync(path).mode & 0o777 });
    } else if (kind === "directory") {
      using folder = openBeneath(topLevel, foldersOf(name));
      const select = (path: string): boolean => {
        const isTaken = !SECRET.test(posix.basename(path)) && !leadsOut(topLevel, posix.join(name, path));
        if (!isTaken) leftOut.push(posix.join(name, path));
        return isTaken;
      };
      await sandbox.refreshFromHost(folder.at(posix.basename(name)), name, { select });
    } else throw new SandboxError("not_found", `There is no ${name} in ${topLevel} any more`);
  }
  if (leftOut.length === 0) return;
  const shown = leftOut.slice(0, MOST_NAMED).join(", ");
  const more = leftOut.length > MOST_NAMED ? ` and ${leftOut.length - MOST_NAMED} more` : "";
  warn(`not copied, since they may hold secrets or lead out of the repository: ${shown}${more}`);
}

function toName(path: string): string {
  const name = posix.normalize(path).replace(/\/+$/, "");
  const parts = name.split("/");
  if (name === "." || name.startsWith("/") || parts.includes("..") || name.includes("\0") || name.includes("\\")) {
    throw refused(path, "it is not a path in the repository");
  }
  if (parts.some((part) => SECRET.test(part))) throw refused(path, "such files hold secrets");
  if (NEVER.includes(parts[0] ?? "")) throw refused(path, "it belongs to git or to Glovebox");
  return name;
}

/** What a path is; a link on the way or in its place is refused. */
function kindOf(topLevel: string, name: string): "file" | "directory" | undefined {
  try {
    using folder = openBeneath(topLevel, foldersOf(name));
    const found = lstatSync(folder.at(posix.basename(name)), { throwIfNoEntry: false });
    if (found === undefined) return undefined;
    if (found.isFile()) return "file";
    if (found.isDirectory()) return "directory";
  } catch (error) {
    if (error instanceof SandboxError && error.code === "not_found") return undefined;
    if (!(error instanceof SandboxError && error.code === "path_confinement")) throw error;
  }
  throw refused(name, "a link is not followed");
}

function foldersOf(name: string): string[] {
  return name.split("/").slice(0, -1);
}

/** Whether a path is a link that leads out of the repository. */
function leadsOut(topLevel: string, name: string): boolean {
  const path = join(topLevel, name);
  try {
    const target = resolve(dirname(path), readlinkSync(path));
    return !`${target}/`.startsWith(`${topLevel}/`);
  } catch {
    return false;
  }
}

function refused(path: string, why: string): SandboxError {
  return new SandboxError("invalid_argument", `Invalid copy ${JSON.stringify(path)}: ${why}`, {
    hint: "name an ignored path of the repository, such as node_modules",
  });
}

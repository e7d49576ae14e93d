import { existsSync, statSync } from "node:fs";
import { lstat, mkdir, open, readdir, readFile, rename, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { hostGit, runHostGit } from "./host-git.js";
import { inRepository } from "./repository.js";

/** Bytes of packed refs beyond which git finds one sooner than we read all. */
const MANY = 4 << 20;

/** Whether refs are files, which can be written without git. */
function hasFiles(gitDir: string): boolean {
  const packed = statSync(join(gitDir, "packed-refs"), { throwIfNoEntry: false });
  return (packed?.size ?? 0) <= MANY && !existsSync(join(gitDir, "reftable"));
}

/** Makes a ref that is not there yet, by the rules of git's own files; false when it is there, or when somebody is about to make it. */
export async function createRef(gitDir: string, ref: string, commit: string): Promise<boolean> {
  if (!hasFiles(gitDir)) {
    return (await runHostGit(["update-ref", "--no-deref", ref, commit, ""], inRepository(gitDir))).exitCode === 0;
  }
  const path = join(gitDir, ref);
  const lock = `${path}.lock`;
  await mkdir(dirname(path), { recursive: true });
  const file = await open(lock, "wx", 0o666).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
  });
  if (file === undefined) return false;
  let isMade = false;
  try {
    try {
      await file.writeFile(`${commit}\n`);
      await file.sync();
    } finally {
      await file.close();
    }
    const isThere = (await lstat(path).catch(() => undefined)) ?? (await packedRefs(gitDir)).includes(` ${ref}\n`);
    if (isThere !== false) return false;
    await rename(lock, path);
    isMade = true;
    return true;
  } finally {
    if (!isMade) await unlink(lock).catch(() => undefined);
  }
}

/** The highest number among the names of the refs below a prefix, which ends in a slash; 0 when there is none. */
export async function lastNumber(gitDir: string, prefix: string): Promise<number> {
  const names = hasFiles(gitDir)
    ? [
        ...(await readdir(join(gitDir, prefix)).catch(() => [])),
        ...(await packedRefs(gitDir)).split("\n").flatMap((line) => {
          const at = line.indexOf(` ${prefix}`);
          return at === -1 ? [] : line.slice(at + 1 + prefix.length);
        }),
      ]
    : (await hostGit(["for-each-ref", "--format=%(refname)", prefix], inRepository(gitDir)))
        .split("\n")
        .map((name) => name.slice(prefix.length));
  return Math.max(0, ...names.map((name) => Number(name) || 0));
}

async function packedRefs(gitDir: string): Promise<string> {
  return await readFile(join(gitDir, "packed-refs"), "latin1").catch(() => "");
}

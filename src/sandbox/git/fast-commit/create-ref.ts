import { randomBytes } from "node:crypto";
import { existsSync, statSync } from "node:fs";
import { link, mkdir, readdir, readFile, unlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { gitError } from "../host.js";
import { checkWayTo, repositoryGit, runRepositoryGit } from "../repository.js";

/** Bytes of `packed-refs` beyond which git finds a ref faster than we read the file. */
const MANY = 4 << 20;

/** Another file system, one without links, or a directory that git removed meanwhile. */
const CANNOT_LINK: ReadonlySet<string | undefined> = new Set(["EXDEV", "EPERM", "ENOTSUP", "EMLINK", "ENOENT"]);

/** Whether refs are files that we can write without git. */
function hasFiles(gitDir: string): boolean {
  const packed = statSync(join(gitDir, "packed-refs"), { throwIfNoEntry: false });
  return (packed?.size ?? 0) <= MANY && !existsSync(join(gitDir, "reftable"));
}

/** Creates a ref; false when it exists. Without a lock like git's, which would stay if we are killed. */
export async function createRef(gitDir: string, ref: string, commit: string): Promise<boolean> {
  checkWayTo(gitDir, ref);
  if (hasFiles(gitDir)) {
    try {
      return await linkRef(gitDir, ref, commit);
    } catch (error) {
      if (!CANNOT_LINK.has((error as NodeJS.ErrnoException).code)) throw error;
    }
  }
  const args = ["update-ref", "--no-deref", ref, commit, ""];
  const result = await runRepositoryGit(args, gitDir);
  if (result.exitCode === 0) return true;
  const found = await runRepositoryGit(["show-ref", "--verify", "--quiet", ref], gitDir);
  if (found.exitCode === 0) return false;
  throw gitError(args, result);
}

async function linkRef(gitDir: string, ref: string, commit: string): Promise<boolean> {
  // Git knows such names, and removes them if we are killed.
  const draft = join(gitDir, "objects", `tmp_obj_${randomBytes(6).toString("hex")}`);
  try {
    await writeFile(draft, `${commit}\n`, { flag: "wx", flush: true });
    if ((await packedRefs(gitDir)).includes(` ${ref}\n`)) return false;
    await mkdir(dirname(join(gitDir, ref)), { recursive: true });
    await link(draft, join(gitDir, ref));
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  } finally {
    await unlink(draft).catch(() => undefined);
  }
}

/** The highest number among the refs below a prefix, which ends in a slash; 0 when there is none. */
export async function lastNumber(gitDir: string, prefix: string): Promise<number> {
  const names = hasFiles(gitDir)
    ? [
        ...(await readdir(join(gitDir, prefix)).catch(() => [])),
        ...(await packedRefs(gitDir)).split("\n").flatMap((line) => {
          const at = line.indexOf(` ${prefix}`);
          return at === -1 ? [] : line.slice(at + 1 + prefix.length);
        }),
      ]
    : (await repositoryGit(["for-each-ref", "--format=%(refname)", prefix], gitDir))
        .split("\n")
        .map((name) => name.slice(prefix.length));
  return Math.max(0, ...names.map((name) => Number(name) || 0));
}

async function packedRefs(gitDir: string): Promise<string> {
  return await readFile(join(gitDir, "packed-refs"), "latin1").catch(() => "");
}

import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { isBranchName } from "../branch-name.js";

const SHA = /^([0-9a-f]{40}|[0-9a-f]{64})\n$/;

/**
 * The commit that `HEAD` or a ref of a repository of the user's stands for, read as git does: first the file of its own, then the one that many
 * share. Undefined where only git can tell, and where there is none. A start of git takes longer than all else that an overlay needs.
 */
export async function readPlainRef(gitDir: string, name: string): Promise<string | undefined> {
  if (name !== "HEAD") return await readRef(gitDir, name);
  const head = readSmall(join(gitDir, "HEAD"));
  const [, ref] = /^ref: (refs\/heads\/[^\n]+)\n$/.exec(head) ?? [];
  return ref === undefined ? SHA.exec(head)?.[1] : await readRef(gitDir, ref);
}

async function readRef(gitDir: string, ref: string): Promise<string | undefined> {
  const [, rest] = /^refs\/[a-z]+\/(.+)$/.exec(ref) ?? [];
  if (!isBranchName(rest)) return undefined;
  const own = readSmall(join(gitDir, ref));
  if (own !== "") return SHA.exec(own)?.[1];
  const shared = await readFile(join(gitDir, "packed-refs"), "utf8").catch(() => "");
  const end = shared.indexOf(` ${ref}\n`);
  return end === -1 ? undefined : SHA.exec(`${shared.slice(shared.lastIndexOf("\n", end) + 1, end)}\n`)?.[1];
}

function readSmall(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

import { existsSync } from "node:fs";
import { join } from "node:path";
import { readUntrustedText, runRepositoryGit } from "../repository.js";

const MARK = "glovebox: created for ";

/** The first line in the reflog of a branch that was created for a sandbox. */
export function branchMark(record: string): string {
  return `${MARK}${record}`;
}

/** The mark of a branch that was created for any sandbox and has not moved since; otherwise undefined. */
export async function unmovedMark(repo: string, ref: string): Promise<string | undefined> {
  const log = await readReflog(repo, ref);
  return log?.startsWith(MARK) === true && !log.includes("\n") ? log : undefined;
}

/** Reads the reflog of a branch; by git only where it is no file. */
async function readReflog(repo: string, ref: string): Promise<string | undefined> {
  if (existsSync(join(repo, "reftable"))) {
    const shown = await runRepositoryGit(["reflog", "show", "--format=%gs", ref, "--"], repo);
    return shown.stdout.trimEnd();
  }
  const log = readUntrustedText(join(repo, "logs", ref));
  return /^[^\t\n]*\t([^\n]*)\n$/.exec(log)?.[1];
}

import { existsSync } from "node:fs";
import { join } from "node:path";
import { readUntrustedText, runRepositoryGit } from "../repository.js";

const MARK = "glovebox: created for ";

/** The first line in the reflog of a branch that was created for a sandbox. */
export function branchMark(record: string): string {
  return `${MARK}${record}`;
}

/** The mark of a branch that was created for a sandbox, this one or another, and has not moved since; else undefined. */
export async function unmovedMark(repo: string, ref: string): Promise<string | undefined> {
  const story = await readReflog(repo, ref);
  return story?.startsWith(MARK) === true && !story.includes("\n") ? story : undefined;
}

/** What the reflog of a branch says; git is asked only where it is not a plain file. */
async function readReflog(repo: string, ref: string): Promise<string | undefined> {
  if (existsSync(join(repo, "reftable"))) {
    const story = await runRepositoryGit(["reflog", "show", "--format=%gs", ref, "--"], repo);
    return story.stdout.trimEnd();
  }
  const log = readUntrustedText(join(repo, "logs", ref));
  return /^[^\t\n]*\t([^\n]*)\n$/.exec(log)?.[1];
}

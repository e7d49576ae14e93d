import { repositoryGit } from "../../sandbox/host.js";

/** Larger lockfiles are not read. */
const MAX_BYTES = 32 << 20;

/** Reads files at the top of a commit. */
export interface CommitFiles {
  /** The text of a regular file; undefined if there is none, or it is too large. */
  read(name: string): Promise<string | undefined>;
}

/** The regular files at the top of a commit. Links and directories in their place are not there. */
export async function openCommitFiles(gitDir: string, commit: string, signal?: AbortSignal): Promise<CommitFiles> {
  const list = await repositoryGit(["ls-tree", "-z", "-l", commit], gitDir, { signal });
  const blobs = new Map<string, string>();
  for (const line of list.split("\0")) {
    const [, id, size, name] = /^100(?:644|755) blob ([0-9a-f]+) +(\d+)\t(.+)$/s.exec(line) ?? [];
    if (id !== undefined && name !== undefined && Number(size) <= MAX_BYTES) blobs.set(name, id);
  }
  return {
    async read(name) {
      const id = blobs.get(name);
      return id === undefined ? undefined : await repositoryGit(["cat-file", "blob", id], gitDir, { signal });
    },
  };
}

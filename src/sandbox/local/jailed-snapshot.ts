import { join } from "node:path";
import { runtimeDir } from "../home.js";
import { findAlternates } from "./alternates.js";
import { INSIDE_OBJECTS } from "./git-directory.js";
import { createJailedGit } from "./jailed-git.js";
import { createSnapshot } from "./snapshot.js";
import type { Workspace } from "./workspace.js";

/** Saves a sandbox's files as a commit of the user's repository, or of one of ours when there is none; gives its ref. */
export async function takeSnapshot(
  id: string,
  { workDir, base }: Workspace,
  warn: (message: string) => void,
): Promise<string> {
  const store = join(runtimeDir(id), "store");
  const objects = base && [
    { source: base.repository.objects, target: INSIDE_OBJECTS },
    ...(await findAlternates(base.repository.objects)).map((path) => ({ source: path, target: path })),
  ];
  const snapshot = await createSnapshot({
    sandboxId: id,
    store,
    runJailedGit: createJailedGit({ store, tree: workDir, objects: objects ?? [] }),
    ...(base && { source: { repository: base.repository, baseSha: base.sha } }),
  });
  for (const warning of snapshot.warnings) warn(warning);
  return snapshot.id;
}

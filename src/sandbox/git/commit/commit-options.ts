import { makeFastCommit } from "../fast-commit.js";
import { startSpareJail, takeJail } from "../jailed.js";
import { type LiveTree, scratchPath, type TreeLook } from "../live-tree.js";
import { INSIDE_GIT, objectBinds, resolveCommit } from "../repository.js";
import { treeOf } from "../source.js";
import { listIndexPaths, listLayerPaths } from "./changed-paths.js";
import type { TreeCommitOptions } from "./tree-commit.js";

/**
 * What a commit of a live tree needs, with or without the commits of the sandbox. `isOneOfMany` starts a jail for the next commit. `isExact`
 * commits every byte, without filters: a filter may replace a file by a name for bytes that are stored nowhere.
 */
export async function commitOptionsOf(
  tree: LiveTree,
  opts: { withCommits: boolean; look?: TreeLook; isOneOfMany?: boolean; isExact?: boolean },
): Promise<TreeCommitOptions> {
  const { id, base, signal } = tree;
  signal.throwIfAborted();
  const look = opts.look ?? tree.look();
  const store = scratchPath(id, "store");
  const objects = base === undefined ? [] : objectBinds(base.repository);
  const own = opts.withCommits ? look.sandboxGit : undefined;
  if (own !== undefined) objects.push({ ...own, writable: false });
  const isShared = opts.withCommits && own === undefined && base !== undefined;
  const parent = isShared ? await resolveCommit(base.repository.gitDir, `refs/heads/${base.branch}`) : undefined;
  const { repository, sha: baseSha } = base ?? {};
  const filters = repository?.filters ?? [];
  const isUnfiltered = opts.isExact === true && filters.length > 0;
  const index = isUnfiltered ? undefined : base?.index;
  const { source, overlay } = look.root;
  const places = { tree: look.root, objects, signal, timeout: tree.patience };
  return {
    sandboxId: id,
    sandbox: tree,
    ...(await takeJail(tree, store, places)),
    ...(opts.isOneOfMany === true &&
      tree.isLasting === true && { done: () => startSpareJail(tree, scratchPath(id, "store"), places) }),
    ...(repository && baseSha && { source: { repository, baseSha, ...(index && { index }) } }),
    ...(own && { sandboxGit: INSIDE_GIT }),
    ...(!isUnfiltered && { filters }),
    parent,
    ...(base !== undefined &&
      filters.length === 0 &&
      index !== undefined &&
      tree.isLasting === true && {
        makeFast: async (message) =>
          await makeFastCommit({
            base,
            root: look.root,
            sandboxGit: own,
            runGuest: look.runGuest,
            tree: await treeOf(base),
            parent,
            message,
          }),
      }),
    changedPaths: async () => {
      if (isUnfiltered) return undefined;
      if (overlay !== undefined) return await listLayerPaths(source, overlay);
      return base === undefined || index === undefined
        ? undefined
        : await listIndexPaths(index, await treeOf(base), source);
    },
    frozen: (work) => look.frozen(work),
  };
}

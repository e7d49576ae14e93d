import { join } from "node:path";
import { SandboxError } from "../../../../contracts/errors.js";
import { lookAt, unsafePart } from "./untrusted-file.js";

/** Everything in a git directory that Glovebox or its git reads or writes by name. */
const DIRECTORIES = [
  ...["objects", "objects/info", "objects/pack", "info", "worktrees", "reftable"],
  ...["refs", "refs/heads", "refs/heads/glovebox", "refs/tags", "refs/remotes", "refs/remotes/origin"],
  ...["refs/glovebox", "refs/glovebox/bases"],
  ...["logs", "logs/refs", "logs/refs/heads", "logs/refs/heads/glovebox"],
];
const FILES = [
  ...["HEAD", "config", "config.worktree", "packed-refs", "shallow", "index"],
  ...["info/attributes", "info/exclude", "objects/info/alternates"],
];

/** Refuses a git directory with a link, a pipe or the like in the place of a directory or file: it would lead to other files. */
export function checkLayout(gitDir: string): void {
  for (const name of DIRECTORIES) checkPart(join(gitDir, name), "isDirectory", "a directory of its own");
  for (const name of FILES) checkPart(join(gitDir, name), "isFile", "a plain file");
}

/** The same for each directory on the path to a ref, or to its log. */
export function checkWayTo(gitDir: string, ref: string): void {
  const parts = ref.split("/");
  for (let n = 1; n < parts.length; n++) {
    for (const top of ["", "logs"]) {
      const path = join(gitDir, top, ...parts.slice(0, n));
      // Git refuses a ref where a directory must be.
      if (lookAt(path)?.isFile() !== true) checkPart(path, "isDirectory", "a directory of its own");
    }
  }
  for (const top of ["", "logs"]) {
    const path = join(gitDir, top, ref);
    // Git removes an empty directory where a ref of that name must be.
    if (lookAt(path)?.isDirectory() !== true) checkPart(path, "isFile", "a plain file");
  }
}

function checkPart(path: string, is: "isDirectory" | "isFile", wanted: string): void {
  const found = lookAt(path);
  if (found === undefined || found[is]()) return;
  if (!found.isFile()) throw unsafePart(path, wanted);
  throw new SandboxError("invalid_path", `${path} is a file`, {
    hint: "The repository is damaged: a file is in the place of a directory. Clone it again",
  });
}

import { linkSync, renameSync } from "node:fs";
import { dirname } from "node:path";
import { attempt } from "../../../util/attempt.js";
import { draftIn } from "./prepared-etc.js";

/**
 * Makes a file, or a link, that is the same for many sandboxes, as one more name of a shared one. To make a new one, a file system looks for a free
 * number among all those that were freed lately, which takes long when sandboxes come and go. The shared one, beside the prepared `/etc`, is made the
 * first time; where there can't be one, each sandbox has its own.
 */
export function linkShared(shared: string, path: string, make: (file: string) => void): void {
  const link = (): boolean => {
    linkSync(shared, path);
    return true;
  };
  const makeShared = (): boolean => {
    const draft = draftIn(dirname(shared));
    make(draft);
    renameSync(draft, shared);
    return link();
  };
  if (attempt(link) !== true && attempt(makeShared) !== true) make(path);
}

import type { GatheredFile } from "./gather-changes.js";
import type { StorageSettings } from "./storage-settings.js";

/** Names that git or our policy checks, or that another system takes for such a name. */
const SPECIAL_NAME = /^\.git([^a-z]|$)|^\.git(modules|attributes)|^\.mailmap|[~\\]|\xe2[\x80\x81]|\xef\xbb/i;

/** Whether nothing in a path, one character per byte, has a meaning to git. Otherwise git has to check it. */
export function isOrdinaryPath(path: string): boolean {
  return path.split("/").every((name) => !SPECIAL_NAME.test(name));
}

/** Whether git stores a file or link as it is, given the attributes that may apply to it. */
export function isStoredAsIs(
  { path, mode, content }: GatheredFile,
  attributes: string,
  settings: StorageSettings,
): boolean {
  const name = path.slice(path.lastIndexOf("/") + 1);
  if (mode === "120000") return !/^\.git/i.test(name) && !/\.git/i.test(content.toString("latin1"));
  const hasAttributes = attributes !== "";
  if (hasAttributes && (/encoding/i.test(attributes) || content.includes("$Id"))) return false;
  return !((hasAttributes || settings.changesLineEnds) && content.includes(0x0d));
}

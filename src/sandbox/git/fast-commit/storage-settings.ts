import { join } from "node:path";
import { type Repository, readCheckoutSettings, readUntrustedFile } from "../repository.js";

/** What the settings of a repository say about how its files are stored. */
export interface StorageSettings {
  /** Whether line ends of files without attributes are changed. */
  readonly changesLineEnds: boolean;
}

/** Ways of storing refs or objects that are git's own business, and who may read them. */
const SPECIAL = /refstorage|partialclone|sharedrepository|worktreeconfig/i;

/** Undefined where files are not stored as they are, or not in the plainest way. */
export async function readStorageSettings(repository: Repository): Promise<StorageSettings | undefined> {
  const text = readUntrustedFile(join(repository.gitDir, "config"))?.toString("latin1") ?? "";
  const { autocrlf, ignorecase, precomposeunicode, symlinks, filemode } = await readCheckoutSettings(repository);
  const isPlain = ignorecase !== "true" && precomposeunicode !== "true" && symlinks !== "false" && filemode !== "false";
  if (!isPlain || SPECIAL.test(text)) return undefined;
  return { changesLineEnds: autocrlf === "true" || autocrlf === "input" };
}

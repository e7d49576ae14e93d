import { join } from "node:path";
import { type Repository, readCheckoutSettings, readUntrustedFile } from "../repository.js";

/** How a repository stores files. */
export interface StorageSettings {
  /** Whether git converts line ends of files without attributes. */
  readonly changesLineEnds: boolean;
}

/** Settings for how refs and objects are stored, and who may read them, that only git knows how to follow. */
const SPECIAL = /refstorage|partialclone|sharedrepository|worktreeconfig/i;

/** Reads how a repository stores files; undefined when only git can do it. */
export async function readStorageSettings(repository: Repository): Promise<StorageSettings | undefined> {
  const text = readUntrustedFile(join(repository.gitDir, "config"))?.toString("latin1") ?? "";
  const { autocrlf, ignorecase, precomposeunicode, symlinks, filemode } = await readCheckoutSettings(repository);
  const isOrdinary =
    ignorecase !== "true" && precomposeunicode !== "true" && symlinks !== "false" && filemode !== "false";
  if (!isOrdinary || SPECIAL.test(text)) return undefined;
  return { changesLineEnds: autocrlf === "true" || autocrlf === "input" };
}

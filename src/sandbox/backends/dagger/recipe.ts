import type { TreeBase } from "../../git.js";

/** How to build the container of a sandbox on any engine. Never contains a secret. */
export interface Recipe {
  /** With its digest. */
  readonly image: string;
  readonly setup: readonly (readonly string[])[];
  /** Absent: the default one. */
  readonly workDir?: string;
  /** The commit that its files started from. Absent: there is no repository. */
  readonly base?: TreeBase;
}

/** A recipe with the archive of the changes that follow it. */
export interface Saved extends Recipe {
  /** Removed paths; the archive is then a layer over the whole file system. Absent: the archive has the work directory. */
  readonly removed?: readonly string[];
  /** Name of the archive, if it is not known from elsewhere. */
  readonly archive?: string;
}

/** Whether a parsed value is one. */
export function isSaved(value: unknown): value is Saved {
  const {
    image,
    setup,
    workDir = "/",
    removed = [],
    archive = "",
  } = (value ?? {}) as Partial<Record<keyof Saved, unknown>>;
  const isBuilt = typeof image === "string" && Array.isArray(setup) && setup.every(areTexts);
  const isPlaced = typeof workDir === "string" && workDir.startsWith("/");
  return isBuilt && isPlaced && areTexts(removed) && typeof archive === "string";
}

function areTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((each) => typeof each === "string");
}

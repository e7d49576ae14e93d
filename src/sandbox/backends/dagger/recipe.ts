import type { TreeBase } from "../../git.js";

/** How the container of a sandbox is built, on any engine. Never a secret. */
export interface Recipe {
  /** With its digest. */
  readonly image: string;
  readonly setup: readonly (readonly string[])[];
  /** The commit that its files started from. Absent: there is no repository. */
  readonly base?: TreeBase;
}

/** A recipe with the archive that goes with it: what was done after it was followed. */
export interface Saved extends Recipe {
  /** Paths that are gone; the archive is then a layer over the whole file system. Absent: it has the work directory. */
  readonly removed?: readonly string[];
  /** Name of the archive, where it is not known from elsewhere. */
  readonly archive?: string;
}

/** Whether something that was read back is one. */
export function isSaved(value: unknown): value is Saved {
  const { image, setup, removed = [], archive = "" } = (value ?? {}) as Partial<Record<keyof Saved, unknown>>;
  const isBuilt = typeof image === "string" && Array.isArray(setup) && setup.every(areTexts);
  return isBuilt && areTexts(removed) && typeof archive === "string";
}

function areTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((each) => typeof each === "string");
}

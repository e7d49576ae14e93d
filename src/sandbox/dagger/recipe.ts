import type { TreeBase } from "../git/live-tree.js";

/** How the container of a sandbox is built, on any engine. Never a secret. */
export interface Recipe {
  /** With its digest, where the engine knew one. */
  readonly image: string;
  readonly setup: readonly (readonly string[])[];
  /** The commit that its files started from. Absent: there is no repository. */
  readonly base?: TreeBase;
}

/** Whether something that was read back is one. */
export function isRecipe(value: unknown): value is Recipe {
  const { image, setup } = (value ?? {}) as Partial<Record<keyof Recipe, unknown>>;
  const isCommand = (args: unknown): boolean => Array.isArray(args) && args.every((arg) => typeof arg === "string");
  return typeof image === "string" && Array.isArray(setup) && setup.every(isCommand);
}

import { pathToFileURL } from "node:url";
import { SandboxError } from "../../../contracts/errors.js";
import type { Blueprint, BlueprintSpec } from "../types.js";
import { defineBlueprint, isBlueprint } from "./define.js";

const HINTS: Readonly<Record<string, string>> = {
  ERR_UNKNOWN_FILE_EXTENSION: "Node 22.18 and later read TypeScript; with an older one compile it to .mjs first",
  ERR_MODULE_NOT_FOUND: "npm install what it imports next to it; without defineBlueprint a plain object is taken too",
};

/**
 * Runs a blueprint that is code: its default export, else `blueprint`, else whatever it exports first. `path` is how the
 * user knows it, `file` what is run.
 */
export async function importBlueprint(file: string, path: string): Promise<Blueprint> {
  let module: Record<string, unknown>;
  try {
    module = (await import(pathToFileURL(file).href)) as Record<string, unknown>;
  } catch (error) {
    const hint = HINTS[(error as NodeJS.ErrnoException).code ?? ""];
    throw new SandboxError("invalid_argument", `The blueprint ${path} cannot be loaded: ${(error as Error).message}`, {
      cause: error,
      ...(hint !== undefined && { hint }),
    });
  }
  const exported = module["default"] ?? module["blueprint"] ?? Object.values(module)[0];
  if (isBlueprint(exported)) return exported;
  if (typeof exported === "object" && exported !== null) return defineBlueprint(exported as BlueprintSpec);
  throw new SandboxError("invalid_argument", `The blueprint ${path} exports no blueprint`, {
    hint: "its default export must be a blueprint: defineBlueprint({ name, nodes })",
  });
}

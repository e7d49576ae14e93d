import { statSync } from "node:fs";
import { resolve } from "node:path";
import { defineBlueprint, isBlueprint, loadBlueprint } from "../blueprint.js";
import type { Blueprint, BlueprintSpec, HarnessOptions } from "../types.js";

/** The blueprint that a run is given: by name or path, as it is written, or checked already. */
export async function blueprintOf(
  wanted: HarnessOptions["blueprint"],
  { repo, trust }: Pick<HarnessOptions, "repo"> & { trust?: boolean | undefined },
): Promise<Blueprint> {
  if (isBlueprint(wanted)) return wanted;
  if (typeof wanted !== "string") return defineBlueprint(wanted as BlueprintSpec);
  const isHere = statSync(resolve(repo), { throwIfNoEntry: false })?.isDirectory() === true;
  return await loadBlueprint(wanted, { ...(isHere && { repoDir: resolve(repo) }), trust });
}

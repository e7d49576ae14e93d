import type { Capabilities } from "../../../../contracts/types.js";
import { standing } from "../../../machine/standing.js";
import type { Workspace } from "./workspace.js";

/** What can be renamed in a workspace. Only root's overlays can record where a directory of the base has moved. */
export function renamesIn(
  kind: Workspace["kind"],
  isRoot: boolean = standing() === "root",
): NonNullable<Capabilities["renames"]> {
  return kind === "overlay" && !isRoot ? "no-directories-of-the-base" : "all";
}

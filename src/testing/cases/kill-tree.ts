import type { ConformanceCase } from "../types.js";

/** For cases about processes that have left their command's process group. */
export const reachesAll: NonNullable<ConformanceCase["needs"]> = ({ killTree }) =>
  killTree === "best-effort" ? "capabilities.killTree is best-effort" : undefined;

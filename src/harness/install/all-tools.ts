import type { InstallTool } from "./tool.js";
import { cargo } from "./tools/cargo.js";
import { go } from "./tools/go.js";
import { npm } from "./tools/npm.js";
import { pnpm } from "./tools/pnpm.js";
import { pip, uv } from "./tools/python.js";
import { yarnBerry, yarnClassic } from "./tools/yarn.js";

/** Every tool; of one ecosystem the first whose lockfile is there is taken. */
export const INSTALL_TOOLS: readonly InstallTool[] = [npm, pnpm, yarnClassic, yarnBerry, uv, pip, cargo, go];

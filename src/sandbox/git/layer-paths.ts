import { execFile } from "node:child_process";
import { join } from "node:path";
import { agentBinary } from "../agent/binary.js";

/** More of them, and git is as quick when it looks at everything. */
const MOST = 200;

/**
 * The paths that a layer changes of what lies below it, each ended by a zero byte: a new directory stands for all in it. Undefined
 * when they are too many, or cannot all be seen.
 */
export async function listLayerPaths(lower: string, layer: string): Promise<Uint8Array | undefined> {
  return await new Promise((resolve) => {
    const args = ["layer", lower, join(layer, "upper"), String(MOST)];
    const options = { encoding: "buffer", maxBuffer: MOST << 16, env: {} } as const;
    execFile(agentBinary(), args, options, (error, stdout) => resolve(error === null ? stdout : undefined));
  });
}

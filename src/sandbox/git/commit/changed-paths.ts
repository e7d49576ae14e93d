import { execFile } from "node:child_process";
import { join } from "node:path";
import { guestBinary } from "../../guest.js";

/** More of them, and git is as quick when it looks at everything. */
const MOST = 200;

/**
 * The paths that a layer changes of what lies below it, each ended by a zero byte: a new directory stands for all in it. Undefined
 * when they are too many, or cannot all be seen.
 */
export async function listLayerPaths(lower: string, layer: string): Promise<Uint8Array | undefined> {
  return await list(["layer", lower, join(layer, "upper")]);
}

/**
 * The paths of a directory that may differ from what an index of the host's says of its files, in the same form. Undefined as above, and
 * when the index is not one of `tree`, a tree object.
 */
export async function listIndexPaths(index: string, tree: string, dir: string): Promise<Uint8Array | undefined> {
  return await list(["compare", index, tree, dir]);
}

async function list(args: string[]): Promise<Uint8Array | undefined> {
  return await new Promise((resolve) => {
    const options = { encoding: "buffer", maxBuffer: MOST << 16, env: {} } as const;
    execFile(guestBinary(), [...args, String(MOST)], options, (error, stdout) =>
      resolve(error === null ? stdout : undefined),
    );
  });
}

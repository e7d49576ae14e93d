import { execFile } from "node:child_process";
import { join } from "node:path";
import { guestBinary } from "../../guest.js";

/** With more paths git is as fast when it reads everything. */
const MOST = 200;

/** The paths that a layer changes, each ended by a zero byte; undefined when there are too many, or when not all can be seen. */
export async function listLayerPaths(lower: string, layer: string): Promise<Uint8Array | undefined> {
  return await list(["compare-overlay", lower, join(layer, "upper")]);
}

/** The paths of a directory that may differ from an index, likewise. Undefined also when the index is not that of `tree`, a tree object. */
export async function listIndexPaths(index: string, tree: string, dir: string): Promise<Uint8Array | undefined> {
  return await list(["compare-index", index, tree, dir]);
}

async function list(args: string[]): Promise<Uint8Array | undefined> {
  return await new Promise((resolve) => {
    const options = { encoding: "buffer", maxBuffer: MOST << 16, env: {} } as const;
    execFile(guestBinary(), [...args, String(MOST)], options, (error, stdout) =>
      resolve(error === null ? stdout : undefined),
    );
  });
}

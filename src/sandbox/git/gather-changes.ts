import { execFile } from "node:child_process";
import { join } from "node:path";
import { agentBinary } from "../agent/binary.js";
import type { JailBind } from "../jail/jail.js";

/** A file or a link that is there now. */
export interface GatheredFile {
  /** One character a byte. */
  readonly path: string;
  readonly mode: "100644" | "100755" | "120000";
  readonly content: Buffer;
}

/** What has changed in a tree, with what is there now. All of it comes from inside. */
export interface Gathered {
  /** The line of HEAD and the commit, in the git directory of the inside. Absent: there is none. */
  readonly head?: { readonly line: string; readonly commit: string };
  /** Everything at and below these is to be replaced. One character a byte. */
  readonly paths: readonly string[];
  /** All that is at and below them. */
  readonly files: readonly GatheredFile[];
}

/** What is compared. */
export interface GatherOptions {
  root: Pick<JailBind, "source" | "overlay">;
  /** One that the host made of the files of `tree`, a tree object. */
  index: string;
  tree: string;
  inside?: Pick<JailBind, "source" | "overlay"> | undefined;
}

const MOST_PATHS = 200;
const MOST_FILES = 500;
const MOST_BYTES = 8 << 20;
/** Beside the contents: paths, and numbers. */
const MOST_ELSE = 8 << 20;

/** Reads what is changed in a tree; undefined where that is much, or not as plain as files and links. */
export async function gatherChanges({ root, index, tree, inside }: GatherOptions): Promise<Gathered | undefined> {
  const git = inside === undefined ? "-" : upperOf(inside);
  const how =
    root.overlay === undefined ? ["compare", index, tree, root.source] : ["layer", root.source, upperOf(root)];
  const args = ["gather", String(MOST_FILES), String(MOST_BYTES), git, ...how, String(MOST_PATHS)];
  const options = { encoding: "buffer", maxBuffer: MOST_BYTES + MOST_ELSE, env: {} } as const;
  return await new Promise((resolve) => {
    execFile(agentBinary(), args, options, (error, stdout) =>
      resolve(error === null ? parseGathered(stdout) : undefined),
    );
  });
}

function upperOf({ source, overlay }: Pick<JailBind, "source" | "overlay">): string {
  return overlay === undefined ? source : join(overlay, "upper");
}

function parseGathered(bytes: Buffer): Gathered {
  let at = 0;
  const number = (): number => {
    at += 4;
    return bytes.readUInt32LE(at - 4);
  };
  const part = (): Buffer => {
    const length = number();
    at += length;
    return bytes.subarray(at - length, at);
  };
  let head: Gathered["head"];
  const paths: string[] = [];
  const files: GatheredFile[] = [];
  while (at < bytes.length) {
    const letter = bytes.toString("latin1", at, ++at);
    const path = part().toString("latin1");
    const mode = number().toString(8) as GatheredFile["mode"];
    const content = part();
    if (letter === "h") head = { line: path, commit: content.toString("latin1") };
    else if (letter === "p") paths.push(path);
    else files.push({ path, mode, content });
  }
  return { ...(head && { head }), paths, files };
}

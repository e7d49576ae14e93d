import { execFile } from "node:child_process";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { guestBinary } from "../../guest.js";
import type { JailBind } from "../../jail.js";
import type { RunGuest } from "../live-tree.js";
import { INSIDE_GIT } from "../repository.js";

/** A file or symbolic link as it is now. */
export interface GatheredFile {
  /** One character per byte. */
  readonly path: string;
  readonly mode: "100644" | "100755" | "120000";
  readonly content: Buffer;
}

/** The changes of a tree. Untrusted: the sandbox may have made them up. */
export interface Gathered {
  /** The line of HEAD and the commit in the sandbox git. Absent: there is none. */
  readonly head?: { readonly line: string; readonly commit: string };
  /** Replace everything at and below these. One character per byte. */
  readonly paths: readonly string[];
  /** All files at and below them. */
  readonly files: readonly GatheredFile[];
}

/** What to compare. */
export interface GatherOptions {
  root: Pick<JailBind, "source" | "overlay">;
  /** An index that the host made of the files of `tree`, a tree object. */
  index: string;
  tree: string;
  sandboxGit?: Pick<JailBind, "source" | "overlay"> | undefined;
  /** As `TreeLook.runGuest`. */
  runGuest?: RunGuest | undefined;
}

const MOST_PATHS = 200;
const MOST_FILES = 500;
const MOST_BYTES = 8 << 20;
/** With paths and numbers. */
const MOST_OUTPUT = MOST_BYTES + (8 << 20);
/** The guest's exit code when git has to do it. */
const NOT_PLAIN = 3;
const LIMITS = ["gather-changes", String(MOST_FILES), String(MOST_BYTES)];
/** Bytes of an index beyond which sending it takes longer than starting a program. */
const LARGE_INDEX = 1 << 18;

/** Reads the changes of a tree; undefined when there are many, or other things than files and symbolic links. */
export async function gatherChanges(opts: GatherOptions): Promise<Gathered | undefined> {
  const within = opts.runGuest && (await gatherInside(opts, opts.runGuest));
  if (within?.exitCode === 0) return parseGathered(within.stdout);
  if (within?.exitCode === NOT_PLAIN) return undefined;
  const { root, index, tree, sandboxGit } = opts;
  const how =
    root.overlay === undefined
      ? ["compare-index", index, tree, root.source]
      : ["compare-overlay", root.source, upperOf(root)];
  const args = [...LIMITS, sandboxGit === undefined ? "-" : upperOf(sandboxGit), ...how, String(MOST_PATHS)];
  const options = { encoding: "buffer", maxBuffer: MOST_OUTPUT, env: {} } as const;
  return await new Promise((resolve) => {
    execFile(guestBinary(), args, options, (error, stdout) =>
      resolve(error === null ? parseGathered(stdout) : undefined),
    );
  });
}

/** Asks the running guest: starting a program takes longer the more memory this process has. Undefined when that is not possible. */
async function gatherInside(
  { index, tree, sandboxGit }: GatherOptions,
  run: NonNullable<GatherOptions["runGuest"]>,
): ReturnType<typeof run> {
  const found = statSync(index, { throwIfNoEntry: false });
  if (found === undefined || found.size > LARGE_INDEX) return undefined;
  const how = ["compare-index", `-${Math.floor(found.mtimeMs / 1000)}`, tree, ".", String(MOST_PATHS)];
  return await run([...LIMITS, sandboxGit === undefined ? "-" : INSIDE_GIT, ...how], readFileSync(index), MOST_OUTPUT);
}

function upperOf({ source, overlay }: Pick<JailBind, "source" | "overlay">): string {
  return overlay === undefined ? source : join(overlay, "upper");
}

/** Parses the guest's answer; undefined when it is malformed, since the sandbox may have made it up. */
function parseGathered(answer: Uint8Array): Gathered | undefined {
  const bytes = Buffer.from(answer.buffer, answer.byteOffset, answer.length);
  let at = 0;
  const number = (): number => {
    at += 4;
    return bytes.readUInt32LE(at - 4);
  };
  const part = (): Buffer => {
    const length = number();
    at += length;
    if (at > bytes.length) throw new RangeError("cut");
    return bytes.subarray(at - length, at);
  };
  let head: Gathered["head"];
  const paths: string[] = [];
  const files: GatheredFile[] = [];
  try {
    while (at < bytes.length) {
      const letter = bytes.toString("latin1", at, ++at);
      const path = part().toString("latin1");
      const mode = number().toString(8);
      const content = part();
      if (letter !== "h" && !isPath(path)) return undefined;
      if (letter === "h") head = { line: path, commit: content.toString("latin1") };
      else if (letter === "p") paths.push(path);
      else if (isMode(mode)) files.push({ path, mode, content });
      else return undefined;
    }
  } catch {
    return undefined;
  }
  return { ...(head && { head }), paths, files };
}

function isPath(path: string): boolean {
  return path.split("/").every((name) => ![".", "..", ""].includes(name) && !name.includes("\0"));
}

function isMode(mode: string): mode is GatheredFile["mode"] {
  return mode === "100644" || mode === "100755" || mode === "120000";
}

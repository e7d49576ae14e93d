import { closeSync, mkdirSync, openSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { RunDirectory } from "./run-directory.js";
import type { NodeOutput, NodeReport, OutputStream } from "./types.js";

const FILES: Readonly<Record<OutputStream, string>> = {
  stdout: "stdout.log",
  stderr: "stderr.log",
  transcript: "transcript.jsonl",
};

/** Most of one node's output that goes into the events; all of it is in the logs. */
const MAX_EVENT_OUTPUT = 256 * 1024;

/** The full output of every node, in files of its own. */
export class NodeLogs {
  readonly #directory: RunDirectory;
  /** Number of each node of the blueprint, from 1. */
  readonly #numbers: ReadonlyMap<string, number>;
  readonly #open = new Map<string, number>();
  readonly #written = new Map<string, number>();

  constructor(directory: RunDirectory, nodeIds: readonly string[]) {
    this.#directory = directory;
    this.#numbers = new Map(nodeIds.map((id, index) => [id, index + 1]));
  }

  /** Writes a piece of output; says how much of it the events may still hold. */
  write({ nodeId, parentId, stream, bytes }: NodeOutput): { room: number; path: string } {
    const folder = this.#folderOf(nodeId, parentId);
    const path = join(folder, FILES[stream]);
    let file = this.#open.get(path);
    if (file === undefined) {
      mkdirSync(this.#directory.at(folder), { recursive: true });
      file = openSync(this.#directory.at(path), "a", 0o600);
      this.#open.set(path, file);
    }
    for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at);
    const before = this.#written.get(path) ?? 0;
    this.#written.set(path, before + bytes.length);
    return { room: Math.max(0, MAX_EVENT_OUTPUT - before), path };
  }

  /** Ends the logs of a node and says in its result where they are. */
  finish(nodeId: string, parentId: string | undefined, result: NodeReport): NodeReport {
    const folder = this.#folderOf(nodeId, parentId);
    const paths: Partial<Pick<NodeReport, "stdoutPath" | "stderrPath">> = {};
    for (const [stream, name] of Object.entries(FILES)) {
      const path = join(folder, name);
      const file = this.#open.get(path);
      if (file === undefined) continue;
      closeSync(file);
      this.#open.delete(path);
      if (stream === "stdout") paths.stdoutPath = path;
      if (stream === "stderr") paths.stderrPath = path;
    }
    const finished = { ...result, ...paths };
    mkdirSync(this.#directory.at(folder), { recursive: true });
    writeFileSync(this.#directory.at(folder, "result.json"), `${JSON.stringify(finished, undefined, 2)}\n`);
    return finished;
  }

  close(): void {
    for (const file of this.#open.values()) closeSync(file);
    this.#open.clear();
  }

  #folderOf(nodeId: string, parentId: string | undefined): string {
    const top = parentId ?? nodeId;
    const folder = join("nodes", `${this.#numbers.get(top) ?? 0}-${safeName(top)}`);
    return parentId === undefined ? folder : join(folder, safeName(nodeId));
  }
}

/** Ids are checked with the blueprint; those of repairs are made by the engine. */
function safeName(id: string): string {
  return id.replace(/[^A-Za-z0-9_-]+/g, "-").slice(0, 80);
}

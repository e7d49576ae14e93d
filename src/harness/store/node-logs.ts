import { closeSync, constants, writeFileSync, writeSync } from "node:fs";
import { join, sep } from "node:path";
import { openIn } from "../../util/beneath.js";
import type { NodeOutput, NodeReport, OutputStream } from "../types.js";
import type { RunDirectory } from "./run-directory.js";

const { O_APPEND, O_CREAT, O_TRUNC, O_WRONLY } = constants;

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

  /** Writes a piece of output; says how much of it may still go into the events. */
  write({ nodeId, parentId, stream, bytes }: NodeOutput): { room: number; path: string } {
    const folder = this.#folderOf(nodeId, parentId);
    const path = join(folder, FILES[stream]);
    let file = this.#open.get(path);
    if (file === undefined) {
      using opened = this.#directory.open(folder.split(sep), { make: 0o777 });
      file = openIn(opened, FILES[stream], O_APPEND | O_CREAT | O_WRONLY);
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
    using opened = this.#directory.open(folder.split(sep), { make: 0o777 });
    const file = openIn(opened, "result.json", O_CREAT | O_TRUNC | O_WRONLY);
    try {
      writeFileSync(file, `${JSON.stringify(finished, undefined, 2)}\n`);
    } finally {
      closeSync(file);
    }
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

import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createScratch, type Scratch } from "./scratch.js";

/** The built command line. */
export const program: string = fileURLToPath(new URL("../../dist/src/cli.js", import.meta.url));

/** What became of one run. */
export interface Ended {
  code: number | null;
  signal: string | null;
  stdout: string;
  stderr: string;
  /** Standard output as it was. */
  bytes: Buffer;
}

/** A run that goes on. */
export interface Running {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  /** Resolves once standard output holds the text. */
  printed(text: string): Promise<void>;
}

/** A place of its own for runs of the command line: home, temporary files, environment. */
export interface Bench {
  readonly path: string;
  readonly env: Record<string, string>;
  run(args: readonly string[], options?: { input?: string | Uint8Array; env?: Record<string, string> }): Promise<Ended>;
  start(args: readonly string[], env?: Record<string, string>): Running;
  /** What the runs have left: processes that name the place, and folders of sandboxes. */
  leftovers(): string[];
  /** Polls until nothing is left; gives what still is after ten seconds. */
  settled(): Promise<string[]>;
  remove(): void;
}

/** Makes a place for runs of the built command line; in one that is there already, both have the same home. */
export function createBench(shared?: Scratch): Bench {
  if (!existsSync(program)) throw new Error("there is no dist/: type npm run build first");
  const scratch = shared ?? createScratch();
  const temporary = join(scratch.path, "tmp");
  mkdirSync(temporary);
  const env = {
    PATH: process.env["PATH"] ?? "",
    HOME: scratch.path,
    TMPDIR: temporary,
    GLOVEBOX_HOME: shared?.home ?? join(scratch.path, "state"),
    LANG: "C.UTF-8",
  };
  const start = (args: readonly string[], more: Record<string, string> = {}): Running => {
    const child = spawn(process.execPath, [program, ...args], { cwd: scratch.path, env: { ...env, ...more } });
    return watch(child);
  };
  const leftovers = (): string[] => [
    ...readdirSync(temporary),
    ...commandLines().filter((line) => line.includes(scratch.path)),
  ];
  return {
    path: scratch.path,
    env,
    start,
    leftovers,
    async run(args, { input = "", env: more = {} } = {}) {
      const { child, ended } = start(args, more);
      child.stdin?.on("error", () => undefined);
      child.stdin?.end(input);
      return await ended;
    },
    async settled() {
      for (let tries = 0; tries < 300 && leftovers().length > 0; tries++) await setTimeout(100);
      return leftovers();
    },
    remove: scratch.remove,
  };
}

function watch(child: ChildProcess): Running {
  const pieces: Buffer[] = [];
  let stderr = "";
  const waiting = new Set<() => void>();
  child.stdout?.on("data", (chunk: Buffer) => {
    pieces.push(chunk);
    for (const look of waiting) look();
  });
  child.stderr?.on("data", (chunk: Buffer) => {
    stderr += chunk;
  });
  const ended = new Promise<Ended>((resolve) => {
    child.once("close", (code, signal) => {
      const bytes = Buffer.concat(pieces);
      resolve({ code, signal, stdout: bytes.toString(), stderr, bytes });
    });
  });
  const printed = (text: string): Promise<void> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        if (!Buffer.concat(pieces).includes(text)) return;
        waiting.delete(look);
        resolve();
      };
      waiting.add(look);
      look();
      void ended.then(() => reject(new Error(`it ended without "${text}": ${stderr}`)));
    });
  return { child, ended, printed };
}

/** The command lines of all processes, this one's left out. */
function commandLines(): string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .map((name) => {
      try {
        return readFileSync(`/proc/${name}/cmdline`, "utf8").replaceAll("\0", " ");
      } catch {
        return "";
      }
    });
}

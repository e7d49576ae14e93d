import { createHash } from "node:crypto";
import { constants, lstatSync } from "node:fs";
import { appendFile, readFile } from "node:fs/promises";
import { SandboxError, toSandboxError } from "../../../../contracts/errors.js";
import type { FileTask, TaskResult } from "../../../tasks.js";

/** A line of a results file. */
export interface ResultLine extends TaskResult {
  /** Digest of everything that defines the task: a changed task runs again. */
  digest: string;
  /** ISO 8601. */
  endedAt: string;
}

/** The results of earlier runs; this run appends its own. */
export class ResultsFile {
  readonly #path: string;
  readonly #flag: number;
  readonly #lines: ReadonlyMap<string, ResultLine>;
  #writing: Promise<void> = Promise.resolve();

  private constructor(path: string, flag: number, lines: ReadonlyMap<string, ResultLine>) {
    this.#path = path;
    this.#flag = flag;
    this.#lines = lines;
  }

  /**
   * Reads the earlier results. Ignores a last line cut off by a crash; refuses any other bad line. Follows a link only if the
   * user named it: one next to a task file may have come with it.
   */
  static async open(path: string, { isNamed }: { isNamed: boolean }): Promise<ResultsFile> {
    if (!isNamed && lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true) {
      throw new SandboxError("permission_denied", `${path} is a link, and its target would get the results`, {
        hint: "name the file yourself with --results",
      });
    }
    const { O_APPEND, O_CREAT, O_WRONLY, O_NOFOLLOW } = constants;
    // Without O_NOFOLLOW on this system, the check above has to do.
    const flag = O_APPEND | O_CREAT | O_WRONLY | (isNamed ? 0 : (O_NOFOLLOW ?? 0));
    const text = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return "";
      throw toSandboxError(error, { operation: "read the results" });
    });
    const lines = new Map<string, ResultLine>();
    const texts = text.split("\n");
    texts.forEach((line, index) => {
      const parsed = line === "" ? undefined : parse(line);
      if (parsed !== undefined) lines.set(parsed.taskId, parsed);
      else if (line !== "" && index < texts.length - 1) {
        throw new SandboxError("invalid_argument", `${path} is not a results file: cannot read line ${index + 1}`, {
          hint: "name another file with --results",
        });
      }
    });
    if (text !== "" && !text.endsWith("\n")) await appendFile(path, "\n", { flag });
    return new ResultsFile(path, flag, lines);
  }

  /** The result of a task, if it ran to its end and has not changed since. */
  find(taskId: string, digest: string): ResultLine | undefined {
    const line = this.#lines.get(taskId);
    return line?.digest === digest && line.error === undefined ? line : undefined;
  }

  /** Appends a line; concurrent ones never mix. */
  add(line: ResultLine): Promise<void> {
    const text = `${JSON.stringify(line)}\n`;
    this.#writing = this.#writing.then(() => appendFile(this.#path, text, { mode: 0o600, flag: this.#flag }));
    return this.#writing.catch((error: unknown) => {
      throw toSandboxError(error, { operation: "write the results" });
    });
  }
}

/** Digest of everything that decides what a task does. */
export function digestOf(task: FileTask, command: string | readonly string[]): string {
  return createHash("sha256")
    .update(JSON.stringify([task.setup, command, task.timeout]))
    .digest("hex")
    .slice(0, 32);
}

function parse(line: string): ResultLine | undefined {
  try {
    const value = JSON.parse(line) as Partial<ResultLine> | null;
    return typeof value?.taskId === "string" && typeof value.digest === "string" ? (value as ResultLine) : undefined;
  } catch {
    return undefined;
  }
}

import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { SandboxError, toSandboxError } from "../../contracts/errors.js";
import { decodeRecord, encodeRecord, JOURNAL_VERSION, type JournalRecord, versionOf } from "./journal-record.js";
import { encodeResult } from "./result-lines.js";
import { applyRecord, emptyState, type JournalState } from "./task-states.js";

interface Entry {
  /** A line of the results that is on the disk before the records. */
  readonly result: string;
  readonly records: (end: number) => readonly JournalRecord[];
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/** What happened to the tasks of a batch, and their results, on a disk. Everything that waits is written and synced together. */
export class Journal {
  readonly state: JournalState;
  readonly #path: string;
  readonly #records: FileHandle;
  readonly #results: FileHandle;
  #end: number;
  #resultsEnd: number;
  #waiting: Entry[] = [];
  #writing: Promise<void> | undefined;
  #broken: SandboxError | undefined;

  private constructor(
    path: string,
    files: { records: FileHandle; results: FileHandle },
    state: JournalState,
    end: number,
  ) {
    this.#path = path;
    this.#records = files.records;
    this.#results = files.results;
    this.state = state;
    this.#end = end;
    this.#resultsEnd = state.resultsEnd;
  }

  /**
   * Opens the files of a batch, and makes them if absent. A last record that a crash has cut off is dropped, and so are results that no record
   * acknowledges. Damage before that is `tampered`.
   */
  static async open(path: string, resultsPath: string): Promise<Journal> {
    const records = await openFile(path);
    const results = await openFile(resultsPath).catch(async (error: unknown) => {
      await records.close();
      throw error;
    });
    try {
      const { state, end } = readRecords(await records.readFile(), path);
      await records.truncate(end);
      const { size } = await results.stat();
      if (size < state.resultsEnd) {
        throw new SandboxError("tampered", `${resultsPath} is shorter than ${path} says`, { hint: OTHER_PLACE });
      }
      await results.truncate(state.resultsEnd);
      return new Journal(path, { records, results }, state, end);
    } catch (error) {
      await Promise.all([records.close(), results.close()]);
      throw toSandboxError(error, { operation: "open the journal" });
    }
  }

  /** Writes records. Resolves once they would survive a power loss. */
  async add(...records: readonly JournalRecord[]): Promise<void> {
    await this.addAll(records);
  }

  /** Writes as many records as a batch has tasks. */
  async addAll(records: readonly JournalRecord[]): Promise<void> {
    await this.#enqueue("", () => records);
  }

  /** Writes a result, then the record that acknowledges it. */
  async addResult(result: object, record: (end: number) => JournalRecord): Promise<void> {
    await this.#enqueue(encodeResult(result), (end) => [record(end)]);
  }

  async close(): Promise<void> {
    await this.#writing;
    await Promise.all([this.#records.close(), this.#results.close()]);
  }

  #enqueue(result: string, records: Entry["records"]): Promise<void> {
    if (this.#broken !== undefined) return Promise.reject(this.#broken);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ result, records, resolve, reject });
      this.#writing ??= this.#writeAll().finally(() => {
        this.#writing = undefined;
      });
    });
  }

  async #writeAll(): Promise<void> {
    // What comes in the same turn of the event loop shares a sync.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const group = this.#waiting.splice(0);
      try {
        const written = await this.#write(group);
        for (const record of written) applyRecord(this.state, record);
        for (const { resolve } of group) resolve();
      } catch (error) {
        const { code, message } = toSandboxError(error);
        this.#broken = new SandboxError(code, `${this.#path} can't be written: ${message}`, { cause: error });
        for (const { reject } of [...group, ...this.#waiting.splice(0)]) reject(this.#broken);
        // What was written in part must not look like damage later.
        await this.#records.truncate(this.#end).catch(() => undefined);
        await this.#results.truncate(this.#resultsEnd).catch(() => undefined);
      }
    }
  }

  async #write(group: readonly Entry[]): Promise<JournalRecord[]> {
    let end = this.#resultsEnd;
    const written = group.flatMap(({ result, records }) => {
      end += Buffer.byteLength(result);
      return records(end);
    });
    const results = group.map(({ result }) => result).join("");
    if (results !== "") await writeDurable(this.#results, results, this.#resultsEnd);
    this.#end += await writeDurable(
      this.#records,
      written.map((record) => encodeRecord(record, this.#end)).join(""),
      this.#end,
    );
    this.#resultsEnd = end;
    return written;
  }
}

/** What a journal says, for those who only look at it. */
export async function readJournal(path: string): Promise<JournalState> {
  try {
    const file = await open(path, constants.O_RDONLY | NO_LINK);
    try {
      return readRecords(await file.readFile(), path).state;
    } finally {
      await file.close();
    }
  } catch (error) {
    const failure = toSandboxError(error, { operation: "read the journal" });
    if (failure.code !== "not_found") throw failure;
    throw new SandboxError("not_found", `${path} is gone: nothing says what was done`, {
      cause: error,
      hint: OTHER_PLACE,
    });
  }
}

const OTHER_PLACE = "name another directory with out; the tasks then run from the start";
/** Absent on systems without links of this kind. */
const NO_LINK = constants.O_NOFOLLOW ?? 0;

async function openFile(path: string): Promise<FileHandle> {
  try {
    return await open(path, constants.O_RDWR | constants.O_CREAT | NO_LINK, 0o600);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ELOOP")
      throw toSandboxError(error, { operation: "open the journal" });
    throw new SandboxError("permission_denied", `${path} is a link, and its target would be written to`, {
      cause: error,
      hint: OTHER_PLACE,
    });
  }
}

/** Returns how many bytes it has written. */
async function writeDurable(file: FileHandle, text: string, position: number): Promise<number> {
  const bytes = Buffer.from(text);
  for (let done = 0; done < bytes.length; ) {
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done, position + done);
    done += bytesWritten;
  }
  await file.datasync();
  return bytes.length;
}

function readRecords(content: Buffer, path: string): { state: JournalState; end: number } {
  const state = emptyState();
  let end = 0;
  let torn: { readonly line: number; readonly start: number } | undefined;
  let isOurs = false;
  for (let start = 0, line = 1; start < content.length; line++) {
    const stop = content.indexOf(0x0a, start);
    const text = content.toString("utf8", start, stop === -1 ? content.length : stop);
    const version = line === 1 ? versionOf(text) : undefined;
    if (version !== undefined && version > JOURNAL_VERSION && stop !== -1) throw newer(path, version);
    const written = stop === -1 ? undefined : decodeRecord(text);
    isOurs ||= written !== undefined;
    if (written === undefined) torn ??= { line, start };
    else if (torn !== undefined) {
      // What was written together has no order on the disk: after a power loss its end may be there without its beginning.
      if ((written.from ?? start) > torn.start) throw damaged(path, torn.line);
    } else if (state.header === undefined && written.record.t !== "batch") throw damaged(path, line);
    else {
      applyRecord(state, written.record);
      end = stop + 1;
    }
    start = stop === -1 ? content.length : stop + 1;
  }
  // No journal of ours starts with anything but its header, so this is somebody else's file.
  if (end === 0 && !isOurs && content.includes(0x0a)) throw damaged(path, 1);
  return { state, end };
}

function newer(path: string, version: number): SandboxError {
  return new SandboxError("unsupported", `${path} has format ${version}; this Glovebox knows ${JOURNAL_VERSION}`, {
    hint: "go on with the newer Glovebox that wrote it",
  });
}

function damaged(path: string, line: number): SandboxError {
  return new SandboxError("tampered", `${path} is damaged: line ${line} can't be read`, { hint: OTHER_PLACE });
}

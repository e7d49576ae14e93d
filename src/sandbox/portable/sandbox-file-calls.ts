import type {
  DirectoryEntry,
  FileCallOptions,
  FileContent,
  FileStat,
  ReadStreamOptions,
  UploadOptions,
  WriteFileOptions,
} from "../../../contracts/types.js";
import { check, type Schema } from "../../util/schema.js";
import type { FileUpload, Sandbox } from "../types.js";
import type { CallRunner } from "./call-runner.js";
import type { OpenSandboxState } from "./open-sandbox-state.js";
import { fileOptions } from "./sandbox-file-calls/file-options.js";
import { readStream } from "./sandbox-file-calls/file-streams.js";
import * as files from "./sandbox-file-calls/files.js";
import { exportDirectory, refreshFromHost } from "./sandbox-file-calls/transfer.js";

/** The calls of a sandbox that concern its files. */
type FileMethods = Pick<
  Sandbox,
  | "uploadFiles"
  | "writeFile"
  | "writeFiles"
  | "appendFile"
  | "readFile"
  | "readBytes"
  | "readStream"
  | "exists"
  | "stat"
  | "listDirectory"
  | "deleteFile"
  | "remove"
  | "rename"
  | "copy"
  | "makeDirectory"
  | "setWorkdir"
  | "exportDirectory"
  | "downloadDirectory"
  | "refreshFromHost"
  | "uploadDirectory"
>;

/** Each call checks its options, and ends at the deadline or when its signal is aborted. */
export class SandboxFileCalls implements FileMethods {
  readonly #state: OpenSandboxState;
  readonly #calls: CallRunner;

  constructor(state: OpenSandboxState, calls: CallRunner) {
    this.#state = state;
    this.#calls = calls;
  }

  uploadFiles(uploads: readonly FileUpload[], opts: FileCallOptions = {}): Promise<void> {
    return this.#run("uploadFiles", opts, fileOptions.plain, (signal) =>
      files.uploadFiles(this.#state, uploads, signal),
    );
  }

  writeFile(path: string, content: FileContent, opts: WriteFileOptions = {}): Promise<void> {
    return this.#run("writeFile", opts, fileOptions.write, (signal) =>
      files.writeFile(this.#state, path, content, opts, signal),
    );
  }

  writeFiles(contents: Readonly<Record<string, string | Uint8Array>>, opts: FileCallOptions = {}): Promise<void> {
    return this.#run("writeFiles", opts, fileOptions.plain, (signal) =>
      files.writeFiles(this.#state, contents, signal),
    );
  }

  appendFile(path: string, content: string | Uint8Array, opts: WriteFileOptions = {}): Promise<void> {
    return this.#run("appendFile", opts, fileOptions.write, (signal) =>
      files.appendFile(this.#state, path, content, opts, signal),
    );
  }

  readFile(path: string, opts: FileCallOptions = {}): Promise<string | null> {
    return this.#run("readFile", opts, fileOptions.plain, (signal) => files.readFile(this.#state, path, signal));
  }

  readBytes(path: string, opts: FileCallOptions = {}): Promise<Uint8Array | null> {
    return this.#run("readBytes", opts, fileOptions.plain, (signal) => files.readBytes(this.#state, path, signal));
  }

  readStream(path: string, opts: ReadStreamOptions = {}): Promise<ReadableStream<Uint8Array> | null> {
    return this.#run("readStream", opts, fileOptions.read, (signal) =>
      readStream(this.#state, this.#calls, path, opts, signal),
    );
  }

  exists(path: string, opts: FileCallOptions = {}): Promise<boolean> {
    return this.#run(
      "exists",
      opts,
      fileOptions.plain,
      async (signal) => (await files.stat(this.#state, path, { follow: true }, signal)) !== null,
    );
  }

  stat(path: string, opts: FileCallOptions & { follow?: boolean } = {}): Promise<FileStat | null> {
    return this.#run("stat", opts, fileOptions.stat, (signal) => files.stat(this.#state, path, opts, signal));
  }

  listDirectory(path?: string, opts?: FileCallOptions & { details?: false }): Promise<string[]>;
  listDirectory(path: string, opts: FileCallOptions & { details: true }): Promise<DirectoryEntry[]>;
  listDirectory(path = ".", opts: FileCallOptions & { details?: boolean } = {}): Promise<string[] | DirectoryEntry[]> {
    return this.#run(
      "listDirectory",
      opts,
      fileOptions.list,
      (signal): Promise<string[] | DirectoryEntry[]> =>
        opts.details === true
          ? files.listDetails(this.#state, path, signal)
          : files.listDirectory(this.#state, path, signal),
    );
  }

  deleteFile(path: string, opts: FileCallOptions = {}): Promise<boolean> {
    return this.#run("deleteFile", opts, fileOptions.plain, (signal) => files.deleteFile(this.#state, path, signal));
  }

  remove(path: string, opts: FileCallOptions & { recursive?: boolean } = {}): Promise<boolean> {
    return this.#run("remove", opts, fileOptions.tree, (signal) => files.remove(this.#state, path, opts, signal));
  }

  rename(from: string, to: string, opts: FileCallOptions = {}): Promise<void> {
    return this.#run("rename", opts, fileOptions.plain, (signal) => files.rename(this.#state, from, to, signal));
  }

  copy(from: string, to: string, opts: FileCallOptions & { recursive?: boolean } = {}): Promise<void> {
    return this.#run("copy", opts, fileOptions.tree, (signal) => files.copy(this.#state, from, to, opts, signal));
  }

  makeDirectory(path: string, opts: FileCallOptions = {}): Promise<void> {
    return this.#run("makeDirectory", opts, fileOptions.plain, (signal) =>
      files.makeDirectory(this.#state, path, signal),
    );
  }

  setWorkdir(path: string, opts: FileCallOptions = {}): Promise<void> {
    return this.#run("setWorkdir", opts, fileOptions.plain, (signal) => files.setWorkdir(this.#state, path, signal));
  }

  exportDirectory(sandboxPath: string, hostPath: string, opts: FileCallOptions = {}): Promise<string> {
    return this.#run("exportDirectory", opts, fileOptions.plain, (signal) =>
      exportDirectory(this.#state, sandboxPath, hostPath, signal),
    );
  }

  downloadDirectory(sandboxPath: string, hostPath: string, opts: FileCallOptions = {}): Promise<string> {
    return this.#run("downloadDirectory", opts, fileOptions.plain, (signal) =>
      exportDirectory(this.#state, sandboxPath, hostPath, signal),
    );
  }

  refreshFromHost(hostPath: string, sandboxPath: string, opts: UploadOptions = {}): Promise<void> {
    return this.#run("refreshFromHost", opts, fileOptions.upload, (signal) =>
      refreshFromHost(this.#state, hostPath, sandboxPath, signal, opts.select),
    );
  }

  uploadDirectory(hostPath: string, sandboxPath: string, opts: UploadOptions = {}): Promise<void> {
    return this.#run("uploadDirectory", opts, fileOptions.upload, (signal) =>
      refreshFromHost(this.#state, hostPath, sandboxPath, signal, opts.select),
    );
  }

  async #run<T, O extends FileCallOptions>(
    operation: string,
    opts: O,
    schema: Schema<O>,
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    try {
      this.#calls.assertOpen();
      check(opts, schema, "options");
    } catch (error) {
      throw this.#calls.failure(error, operation);
    }
    return await this.#calls.run(operation, work, opts.signal);
  }
}

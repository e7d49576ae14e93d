import { SandboxError } from "../../../contracts/errors.js";
import type { Sandbox } from "../../../contracts/sandbox.js";
import { invalidArgument } from "../../util/schema.js";
import { deadlineLine, forCall, orAbortReason, runCommand, shellLine } from "../run-command.js";
import type { AiSdkCommand, AiSdkFile, AiSdkProcess, AiSdkSession } from "./types.js";

/** Options of a session. */
export interface AiSdkSessionOptions {
  /** Deadline of one `run` in milliseconds: the AI SDK has none. Default: the sandbox's `operationTimeout`, 10 minutes. */
  timeout?: number;
}

/** Makes an `Experimental_SandboxSession` of a sandbox, for `experimental_sandbox` and for tools. The sandbox stays yours. */
export function createSandboxSession(sandbox: Sandbox, options: AiSdkSessionOptions = {}): AiSdkSession {
  return {
    description: `A sandbox. Files stay between commands.\nCurrent working directory: ${sandbox.workDir}`,
    async run(call) {
      const limit = options.timeout === undefined ? {} : { timeout: options.timeout };
      const result = await runCommand(sandbox, call.command, { ...commandOptions(call), ...limit });
      const { exitCode, stdout, stderr, timedOut } = result;
      return { exitCode, stdout, stderr: timedOut ? `${stderr}${deadlineLine(result)}\n` : stderr };
    },
    spawn: (async (call: AiSdkCommand & { stdin?: boolean }) => await spawn(sandbox, call)) as AiSdkSession["spawn"],
    readFile: async (file) => await onFile(file, (path, call) => sandbox.readStream(path, call)),
    readBinaryFile: async (file) => await onFile(file, (path, call) => sandbox.readBytes(path, call)),
    async readTextFile({ encoding = "utf-8", startLine, endLine, ...file }) {
      const bytes = await onFile(file, (path, call) => sandbox.readBytes(path, call));
      if (bytes === null) return null;
      const text = Buffer.isEncoding(encoding)
        ? Buffer.from(bytes).toString(encoding)
        : new TextDecoder(encoding).decode(bytes);
      if (startLine === undefined && endLine === undefined) return text;
      // As the AI SDK counts: by the file's own line ends, and from 1 whatever a model says.
      const end = ["\r\n", "\n", "\r"].find((each) => text.includes(each)) ?? "\n";
      return text
        .split(end)
        .slice(Math.max(1, startLine ?? 1) - 1, endLine)
        .join(end);
    },
    writeFile: async ({ content, ...file }) =>
      await onFile(file, (path, call) => sandbox.writeFile(path, content, call)),
    writeBinaryFile: async ({ content, ...file }) =>
      await onFile(file, (path, call) => sandbox.writeFile(path, content, call)),
    async writeTextFile({ content, encoding = "utf-8", ...file }) {
      if (!Buffer.isEncoding(encoding)) throw invalidArgument("encoding", "an encoding that Node can write", encoding);
      await onFile(file, (path, call) => sandbox.writeFile(path, Buffer.from(content, encoding), call));
    },
    async stat(file) {
      const found = await onFile(file, (path, call) => sandbox.stat(path, { ...call, follow: true }));
      if (found === null) return null;
      const { type, size } = found;
      return { type: type === "symlink" ? "other" : type, size };
    },
    async listDirectory(file) {
      const list = async (path: string, call: { signal?: AbortSignal }) =>
        await sandbox.listDirectory(path, { ...call, details: true });
      const entries = await onFile(file, list).catch((error: unknown) => {
        if (error instanceof SandboxError && error.code === "not_found") return null;
        throw error;
      });
      return entries?.map(({ name, type }) => ({ name, type })) ?? null;
    },
    deleteFile: async (file) => await onFile(file, (path, call) => sandbox.deleteFile(path, call)),
  };
}

async function spawn(sandbox: Sandbox, { stdin, ...call }: AiSdkCommand & { stdin?: boolean }): Promise<AiSdkProcess> {
  const { abortSignal } = call;
  const process = await orAbortReason(abortSignal, async () => {
    const argv = await shellLine(sandbox, call.command);
    return await sandbox.spawn({ argv, ...forCall(commandOptions(call)), stdin: stdin === true ? "pipe" : "none" });
  });
  return {
    stdout: process.stdout,
    stderr: process.stderr,
    ...(process.stdin !== undefined && { stdin: process.stdin }),
    async wait() {
      const { exitCode } = await orAbortReason(abortSignal, () => process.wait());
      abortSignal?.throwIfAborted();
      return { exitCode };
    },
    kill: async () => await process.kill("SIGKILL"),
  };
}

function commandOptions({ workingDirectory, env, abortSignal }: AiSdkCommand) {
  return { cwd: workingDirectory, env, signal: abortSignal };
}

async function onFile<T>(
  { path, abortSignal }: AiSdkFile,
  work: (path: string, call: { signal?: AbortSignal }) => Promise<T>,
): Promise<T> {
  return await orAbortReason(abortSignal, () => work(path, abortSignal === undefined ? {} : { signal: abortSignal }));
}

import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { delimiter, isAbsolute } from "node:path";
import { SandboxError } from "../../../../contracts/errors.js";
import { findProgram, trustedDirectories } from "../../../machine/trusted-programs.js";
import { repositoryOf } from "../../../util/repository-of.js";
import { endProcesses } from "./end-processes.js";
import { type FetchedValue, MAX_VALUE_BYTES, withoutLineEnd } from "./fetched-value.js";

/** Milliseconds. */
const TIMEOUT = 30_000;
/** The variable by which everything that a program has started is found. */
const MARKED = "GLOVEBOX_SECRET_COMMAND";
/** How long the output of a program that has ended is still read, in milliseconds. */
const DRAIN = 1_000;

/**
 * Runs a program of this machine that prints the value of a secret. It runs in `/` without a terminal, and comes from no repository. One that fails,
 * or is not done in time, is `unauthenticated`; then everything that it started is killed: its process group and, on Linux, what left that.
 */
export async function fetchFromCommand(
  name: string,
  { command, timeout = TIMEOUT }: { command: readonly string[]; timeout?: number },
  signal?: AbortSignal,
  parse: typeof parseOutput = parseOutput,
): Promise<FetchedValue> {
  const [first = "", ...args] = command;
  const refuse = (why: string): SandboxError =>
    new SandboxError("unauthenticated", `Secret ${name} has no value: the program ${first} ${why}`, {
      hint: "run it yourself to see what it prints; it must not ask for anything",
    });
  const directories = trustedDirectories(process.env["PATH"] ?? "");
  const program = isAbsolute(first) ? first : findProgram(first, directories);
  if (program === undefined) throw refuse("is not in PATH");
  if (repositoryOf(program) !== undefined) throw refuse("is in a repository, where others may have put it");
  signal?.throwIfAborted();
  const mark = randomUUID();
  const env = { ...process.env, PATH: directories.join(delimiter), [MARKED]: mark };
  const child = spawn(program, args, { cwd: "/", env, detached: true, stdio: ["ignore", "pipe", "ignore"] });
  const output = await outputOf(child, timeout, signal).catch(async (error: unknown) => {
    await endProcesses(child.pid, `${MARKED}=${mark}`);
    signal?.throwIfAborted();
    throw refuse((error as Error).message);
  });
  return parse(output, refuse);
}

async function outputOf(child: ChildProcess, timeout: number, signal: AbortSignal | undefined): Promise<string> {
  const pieces: Buffer[] = [];
  let timer: NodeJS.Timeout | undefined;
  let onAbort: (() => void) | undefined;
  try {
    return await new Promise<string>((resolve, reject) => {
      timer = setTimeout(() => reject(new Error(`was not done after ${timeout} ms`)), timeout);
      onAbort = () => reject(new Error("was stopped"));
      signal?.addEventListener("abort", onAbort);
      let length = 0;
      child.stdout?.on("data", (piece: Buffer) => {
        length += piece.length;
        if (length > MAX_VALUE_BYTES) reject(new Error(`printed more than ${MAX_VALUE_BYTES} bytes`));
        else pieces.push(piece);
      });
      child.once("error", (error: NodeJS.ErrnoException) => reject(new Error(`can't be run (${error.code})`)));
      const end = (): void => resolve(Buffer.concat(pieces).toString("utf8"));
      child.once("exit", (code, killed) => {
        if (code !== 0) reject(new Error(code === null ? `was ended by ${killed}` : `exited with ${code}`));
        // A daemon that it started may hold its output open.
        else setTimeout(end, DRAIN).unref();
      });
      child.once("close", end);
    });
  } finally {
    clearTimeout(timer);
    if (onAbort) signal?.removeEventListener("abort", onAbort);
    child.stdout?.destroy();
    child.unref();
  }
}

function parseOutput(output: string, refuse: (why: string) => SandboxError): FetchedValue {
  const text = withoutLineEnd(output);
  if (text.trimStart().startsWith("{")) return parseJson(text, refuse);
  if (text === "") throw refuse("printed nothing");
  if (/[\r\n]/.test(text)) throw refuse("printed more than one line");
  return { value: text };
}

function parseJson(text: string, refuse: (why: string) => SandboxError): FetchedValue {
  let found: { value?: unknown; expiresAt?: unknown };
  try {
    found = JSON.parse(text) as typeof found;
  } catch {
    // The error of the parser shows a part of the text.
    throw refuse("printed something that starts like JSON and is none");
  }
  const { value, expiresAt } = found;
  if (typeof value !== "string" || value === "") throw refuse('printed JSON without a text named "value"');
  if (expiresAt === undefined || expiresAt === null) return { value };
  const time = typeof expiresAt === "string" ? Date.parse(expiresAt) : Number.NaN;
  if (Number.isNaN(time)) throw refuse('printed JSON with an "expiresAt" that is no ISO 8601 time');
  if (time <= Date.now()) throw refuse("printed a value that has expired");
  return { value, expiresAt: time };
}

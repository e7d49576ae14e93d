import { randomBytes } from "node:crypto";
import { Readable } from "node:stream";
import { SandboxError } from "../../../../contracts/errors.js";
import { archiveError, errorFor, modeForGuest } from "../../guest.js";
import { type DriverFileStream, MAX_FILE_BYTES, MAX_IMPORT_BYTES } from "../../types.js";
import type { RemoteSandbox } from "./client.js";
import { diagnose, persist } from "./failure.js";

const HEAD = 16;
/** The guest could not even open the uploaded file. */
const NOT_BROUGHT = 125;
const REFUSED_BEFORE = 254;

/** How a verb of the guest ended. */
export interface Outcome {
  exitCode: number;
  stdout: string;
  stderr: string;
}

/** What staged files need from the driver. */
export interface Stage {
  readonly remote: RemoteSandbox;
  readonly folder: string;
  readonly workDir: string;
  /** Runs `guest <verb> <args>` in the sandbox. */
  run(args: readonly string[]): Promise<Outcome>;
  /** Aborted when nobody waits for the files any more. */
  readonly signal?: AbortSignal;
}

/** Writes many files with one upload and one command that puts each in its place, whole and never through a link that leads outside. */
export async function placeFiles(
  stage: Stage,
  files: readonly { path: string; relative: string; content: Uint8Array; mode: number | undefined }[],
): Promise<void> {
  const pieces = files.flatMap(({ relative, content, mode }) => {
    const name = Buffer.from(relative);
    const head = Buffer.alloc(HEAD);
    head.writeUInt32LE(modeForGuest(mode), 0);
    head.writeUInt32LE(name.length, 4);
    head.writeBigUInt64LE(BigInt(content.length), 8);
    return [head, name, content];
  });
  const source = Buffer.concat(pieces);
  const destination = newPath(stage, "in");
  try {
    await persist(() => stage.remote.fs.uploadFiles([{ source, destination }]));
  } catch (error) {
    throw await diagnose(stage.remote, error, "an upload");
  }
  const outcome = await runOn(stage, destination, ["place", destination, stage.workDir]);
  if (outcome.exitCode === 0) return;
  const [, index, number] = /^(\d+) (\d+)\n$/.exec(outcome.stdout) ?? [];
  const { path = "the upload" } = files[Number(index)] ?? {};
  if (number === undefined) throw notBrought("an upload", outcome);
  throw errorFor(Number(number), path);
}

/** Writes one file of any size from a stream: it is uploaded completely, and then put in its place. */
export async function putFile(
  stage: Stage,
  { path, relative, source, mode }: DriverFileStream & { relative: string },
): Promise<void> {
  const destination = newPath(stage, "in");
  await uploadStream(stage, source, destination);
  const outcome = await runOn(stage, destination, [
    "put",
    destination,
    stage.workDir,
    relative,
    modeForGuest(mode).toString(8),
  ]);
  if (outcome.exitCode === 0) return;
  const number = /^0 (\d+)\n$/.exec(outcome.stdout)?.[1];
  throw number === undefined ? notBrought("an upload", outcome) : errorFor(Number(number), path);
}

/** A part of a file that is too large for the channel, as a stream. */
export async function fetchStream(
  stage: Stage,
  path: string,
  range: readonly string[],
): Promise<AsyncIterable<Uint8Array>> {
  const staged = await stageOut(stage, "fetch", range, path);
  const source = downloaded(stage, staged);
  // Started here: a generator that was never read would not discard the file.
  let first: IteratorResult<Uint8Array> | undefined = await source.next();
  const next = async (): Promise<IteratorResult<Uint8Array>> => {
    const held = first;
    first = undefined;
    return held ?? (await source.next());
  };
  return { [Symbol.asyncIterator]: () => ({ next, return: () => source.return(undefined) }) };
}

/** Reads a file that is too large for the channel. */
export async function fetchFile(stage: Stage, path: string, relative: string): Promise<Uint8Array> {
  return await withStaged(stage, relative, path, async (staged) => {
    const bytes = await persist(() => stage.remote.fs.downloadFile(staged));
    if (bytes.length <= MAX_FILE_BYTES) return bytes;
    throw new SandboxError("limit_exceeded", `${path} is larger than ${MAX_FILE_BYTES} bytes`);
  });
}

/** The tree below a directory as a tar stream. */
export async function* packTree(stage: Stage, path: string, relative: string): AsyncGenerator<Uint8Array> {
  yield* downloaded(stage, await stageOut(stage, "pack", [relative], path));
}

async function* downloaded(stage: Stage, staged: string): AsyncGenerator<Uint8Array, undefined> {
  try {
    const stream = await persist(() => stage.remote.fs.downloadFileStream(staged));
    for await (const chunk of stream) yield chunk as Uint8Array;
  } catch (error) {
    throw await diagnose(stage.remote, error, "a download");
  } finally {
    await discard(stage, staged);
  }
}

/** Unpacks a tar stream below a directory. */
export async function unpackTree(
  stage: Stage,
  tar: AsyncIterable<Uint8Array>,
  path: string,
  relative: string,
): Promise<void> {
  const destination = newPath(stage, "tar");
  await uploadStream(stage, tar, destination);
  const outcome = await runOn(stage, destination, [
    "unpack",
    destination,
    stage.workDir,
    relative,
    String(MAX_IMPORT_BYTES / 2 ** 20),
  ]);
  if (outcome.exitCode === 0) return;
  const number = /^0 (\d+)\n$/.exec(outcome.stdout)?.[1];
  if (outcome.exitCode === REFUSED_BEFORE && number !== undefined) throw errorFor(Number(number), path);
  if (outcome.exitCode === NOT_BROUGHT) throw notBrought("an upload", outcome);
  throw archiveError(outcome.exitCode, outcome.stderr);
}

async function uploadStream(stage: Stage, source: AsyncIterable<Uint8Array>, destination: string): Promise<void> {
  let failure: unknown;
  // If a source fails, the SDK only reports that the upload failed.
  const watched = async function* (): AsyncGenerator<Uint8Array> {
    try {
      yield* source;
    } catch (error) {
      failure = error;
      throw error;
    }
  };
  try {
    await stage.remote.fs.uploadFileStream(Readable.from(watched()), destination);
  } catch (error) {
    throw failure ?? (await diagnose(stage.remote, error, "an upload"));
  }
}

/** Runs a verb on an uploaded file, which the verb removes; if nobody waits for it any more, the file is removed instead. */
async function runOn(stage: Stage, destination: string, args: readonly string[]): Promise<Outcome> {
  if (stage.signal?.aborted !== true) return await stage.run(args);
  await discard(stage, destination);
  throw stage.signal.reason;
}

async function withStaged<T>(
  stage: Stage,
  relative: string,
  path: string,
  work: (staged: string) => Promise<T>,
): Promise<T> {
  const staged = await stageOut(stage, "fetch", [relative], path);
  try {
    return await work(staged);
  } catch (error) {
    throw await diagnose(stage.remote, error, "a download");
  } finally {
    await discard(stage, staged);
  }
}

async function stageOut(stage: Stage, verb: string, args: readonly string[], path: string): Promise<string> {
  const staged = newPath(stage, "out");
  const outcome = await stage.run([verb, staged, stage.workDir, ...args]).catch(async (error: unknown) => {
    await discard(stage, staged);
    throw error;
  });
  if (outcome.exitCode === 0) return staged;
  const number = /^0 (\d+)\n$/.exec(outcome.stdout)?.[1];
  if (number !== undefined) throw errorFor(Number(number), path);
  if (outcome.exitCode === NOT_BROUGHT) throw notBrought("a download", outcome);
  throw archiveError(outcome.exitCode, outcome.stderr);
}

/** If this fails, the file is removed with the sandbox. */
async function discard({ remote }: Stage, staged: string): Promise<void> {
  await remote.fs.deleteFile(staged).catch(() => undefined);
}

function newPath({ folder }: Stage, kind: string): string {
  return `${folder}/${kind}-${randomBytes(8).toString("hex")}`;
}

/** On some runtimes the SDK reports every upload as successful. */
function notBrought(what: string, { exitCode, stderr }: Outcome): SandboxError {
  const said = stderr.trim();
  return new SandboxError(
    "unavailable",
    `Daytona: ${what} did not arrive (${exitCode})${said === "" ? "" : `: ${said}`}`,
  );
}

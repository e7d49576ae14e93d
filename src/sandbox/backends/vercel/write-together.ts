import type { GuestFiles } from "../../guest.js";

/** A file as a driver gets it. */
interface Upload {
  readonly path: string;
  readonly content: Uint8Array;
  readonly mode: number | undefined;
}

/** Everything in transit at the same time fits into one letter, which is one request. */
const MAX_BYTES = 3 << 20;
const MAX_FILES = 1_000;
/** Larger files are sent on their own, as a stream. */
const LARGE = 1 << 20;
/** Room for a path and its metadata. */
const OVERHEAD = 5_000;

/**
 * Writes files in as few requests as possible, in their order. If one can't be written, others of its request may have been. The first failure is
 * thrown, and nothing is sent after it.
 */
export async function writeTogether(
  files: GuestFiles,
  uploads: readonly Upload[],
  signal?: AbortSignal,
): Promise<void> {
  for (const batch of batches(uploads)) {
    signal?.throwIfAborted();
    const writes = batch.map(({ path, content, mode }) => files.write(path, content, mode, signal));
    const written = await Promise.allSettled(writes);
    const failed = written.find((each) => each.status === "rejected");
    if (failed !== undefined) throw failed.reason;
  }
}

function* batches(uploads: readonly Upload[]): Generator<readonly Upload[]> {
  let batch: Upload[] = [];
  let bytes = 0;
  for (const upload of uploads) {
    const more = upload.content.length > LARGE ? MAX_BYTES : upload.content.length + OVERHEAD;
    if (batch.length > 0 && (bytes + more > MAX_BYTES || batch.length === MAX_FILES)) {
      yield batch;
      batch = [];
      bytes = 0;
    }
    batch.push(upload);
    bytes += more;
  }
  if (batch.length > 0) yield batch;
}

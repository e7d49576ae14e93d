/** What was kept of a stream. */
export interface Kept {
  bytes: Buffer;
  /** Whether there was no more than that. */
  isWhole: boolean;
}

/** Reads a stream to its end and keeps its first bytes; `onExcess` is called for every piece with some that are not kept. */
export async function readUpTo(stream: AsyncIterable<Uint8Array>, most: number, onExcess?: () => void): Promise<Kept> {
  const kept: Uint8Array[] = [];
  let length = 0;
  let isWhole = true;
  for await (const chunk of stream) {
    const piece = chunk.length > most - length ? chunk.subarray(0, most - length) : chunk;
    if (piece.length > 0) kept.push(piece);
    length += piece.length;
    if (piece.length === chunk.length) continue;
    isWhole = false;
    onExcess?.();
  }
  return { bytes: Buffer.concat(kept, length), isWhole };
}

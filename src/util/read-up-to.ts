/** The first bytes of a stream. */
export interface Kept {
  bytes: Buffer;
  /** Whether that is the whole stream. */
  isWhole: boolean;
}

/** Reads a stream to its end and returns its first `most` bytes; calls `onExcess` for every chunk beyond them. */
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

/** The reverse of `guest/channel/lz4.c`, for one LZ4 block; undefined if it does not decode to exactly so many bytes. */
export function unsqueeze(from: Uint8Array, size: number): Buffer | undefined {
  if (size > MAX_BLOCK) return undefined;
  const to = Buffer.alloc(size);
  let [read, written] = [0, 0];
  const lengthOf = (code: number): number => {
    let length = code;
    for (let more = code === 15 ? 255 : 0; more === 255; length += more) more = from[read++] ?? 0;
    return length;
  };
  while (read < from.length) {
    const token = from[read++] ?? 0;
    const literals = lengthOf(token >> 4);
    if (read + literals > from.length || written + literals > size) return undefined;
    to.set(from.subarray(read, read + literals), written);
    read += literals;
    written += literals;
    if (read === from.length) break;
    const offset = (from[read] ?? 0) | ((from[read + 1] ?? 0) << 8);
    read += 2;
    const match = lengthOf(token & 15) + MIN_MATCH;
    if (offset === 0 || offset > written || written + match > size) return undefined;
    // Byte by byte where it overlaps itself: that is how LZ4 encodes a run.
    if (offset === 1) to.fill(to[written - 1] ?? 0, written, written + match);
    else if (offset >= match) to.copyWithin(written, written - offset, written - offset + match);
    else for (let i = 0; i < match; i++) to[written + i] = to[written + i - offset] ?? 0;
    written += match;
  }
  return written === size ? to : undefined;
}

const MIN_MATCH = 4;
const MAX_BLOCK = 1 << 16;

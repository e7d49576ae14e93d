/** Bytes of a frame's head without and with the longer forms of its length. */
const SHORT = 2;
const LENGTH_16 = 126;
const LENGTH_64 = 127;
const MASK_BYTES = 4;

/** What replaces something in a stream of bytes by as many others. */
interface Replacer {
  write(chunk: Buffer): Buffer;
  end(): Buffer;
}

/**
 * Replaces in what the frames of a WebSocket carry. The end of a frame is never held back, whatever it could be the start of: its program would wait for it. Bytes that
 * are no frames pass, too.
 */
export async function* rewriteFrames(pieces: AsyncIterable<Buffer>, replacer: Replacer): AsyncGenerator<Buffer> {
  let head = Buffer.alloc(0);
  let left = 0;
  for await (const piece of pieces) {
    const ready: Buffer[] = [];
    for (let rest = piece; rest.length > 0; ) {
      if (left > 0) {
        const part = rest.subarray(0, left);
        left -= part.length;
        rest = rest.subarray(part.length);
        ready.push(replacer.write(part));
        if (left === 0) ready.push(replacer.end());
        continue;
      }
      head = Buffer.concat([head, rest]);
      const frame = readHead(head);
      if (frame === undefined) break;
      ready.push(head.subarray(0, frame.headBytes));
      rest = head.subarray(frame.headBytes);
      left = frame.payloadBytes;
      head = Buffer.alloc(0);
    }
    const bytes = Buffer.concat(ready);
    if (bytes.length > 0) yield bytes;
  }
  const last = Buffer.concat([head, replacer.end()]);
  if (last.length > 0) yield last;
}

/** Undefined while too little of the head is there. */
function readHead(bytes: Buffer): { headBytes: number; payloadBytes: number } | undefined {
  const second = bytes[1];
  if (second === undefined) return undefined;
  const length = second & 0x7f;
  const longer = length === LENGTH_16 ? 2 : length === LENGTH_64 ? 8 : 0;
  const headBytes = SHORT + longer + (second & 0x80 ? MASK_BYTES : 0);
  if (bytes.length < headBytes) return undefined;
  if (longer === 0) return { headBytes, payloadBytes: length };
  const payload = longer === 2 ? bytes.readUInt16BE(SHORT) : Number(bytes.readBigUInt64BE(SHORT));
  return { headBytes, payloadBytes: payload };
}

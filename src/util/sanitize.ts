export { createRedactor, redact, registerSecret } from "./redact.js";

/** Default bound of the output kept per stream: 1 MiB. */
export const MAX_OUTPUT_BYTES: number = 1024 * 1024;

/** The line that replaces the bytes left out. */
export function truncationMarker(omittedBytes: number): string {
  return `\n[... ${omittedBytes} bytes left out ...]\n`;
}

/**
 * Cuts a text to `maxBytes` of UTF-8: head and tail with a marker between, which is not counted. Redact first: a secret
 * cut in half is no longer found.
 */
export function truncate(text: string, maxBytes: number = MAX_OUTPUT_BYTES): string {
  if (!Number.isSafeInteger(maxBytes) || maxBytes < 0) {
    throw new RangeError(`maxBytes must be a whole number of at least 0, got ${maxBytes}`);
  }
  if (Buffer.byteLength(text) <= maxBytes) return text;
  const bytes = Buffer.from(text);
  const headEnd = boundaryBefore(bytes, Math.ceil(maxBytes / 2));
  const tailStart = boundaryAfter(bytes, bytes.length - Math.floor(maxBytes / 2));
  const marker = truncationMarker(tailStart - headEnd);
  return bytes.toString("utf8", 0, headEnd) + marker + bytes.toString("utf8", tailStart);
}

function boundaryBefore(bytes: Buffer, index: number): number {
  let at = index;
  while (at > 0 && isContinuation(bytes[at])) at -= 1;
  return at;
}

function boundaryAfter(bytes: Buffer, index: number): number {
  let at = index;
  while (at < bytes.length && isContinuation(bytes[at])) at += 1;
  return at;
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}

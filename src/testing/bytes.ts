import { createHash } from "node:crypto";

/** The same unpredictable-looking bytes for the same seed: every value, in no order that a filter could keep. */
export function noise(length: number, seed: number): Uint8Array {
  const words = new Int32Array(Math.ceil(length / 4));
  let state = seed | 1;
  for (let i = 0; i < words.length; i++) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    words[i] = state;
  }
  return new Uint8Array(words.buffer, 0, length);
}

/** Hexadecimal SHA-256. */
export function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** The bytes of a text. */
export function utf8(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

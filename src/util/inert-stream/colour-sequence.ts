const ESC = 0x1b;
const LONGEST = 64;

/**
 * Length of the escape sequence that starts here and does nothing but set colours and weight (SGR); 0 if none does, undefined
 * if it may continue after the end. Text that is concealed, other fonts and private sequences are none.
 */
export function colourLength(bytes: Uint8Array, at: number): number | undefined {
  if (bytes[at] !== ESC) return 0;
  const end = Math.min(bytes.length, at + LONGEST);
  if (at + 1 >= end) return undefined;
  if (bytes[at + 1] !== OPEN) return 0;
  for (let index = at + 2; index < end; index++) {
    const byte = bytes[index] ?? 0;
    if (byte === CLOSE) return isColour(bytes.subarray(at + 2, index)) ? index + 1 - at : 0;
    const isParameter = byte >= 0x30 && byte <= 0x3b;
    if (!isParameter) return 0;
  }
  return end - at < LONGEST ? undefined : 0;
}

/** Whether a sequence of colours ends what others have set. */
export function isColourReset(sequence: Uint8Array): boolean {
  return sequence.subarray(2, -1).every((byte) => byte === ZERO);
}

const OPEN = 0x5b;
const CLOSE = 0x6d;
const ZERO = 0x30;

/** Whether these are parameters of colours and weight alone, as in `1;38;5;208`. */
function isColour(parameters: Uint8Array): boolean {
  const words = Buffer.from(parameters).toString("latin1").split(";");
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? "";
    if (!/^\d{0,3}(?::\d{0,3}){0,6}$/.test(word)) return false;
    const code = Number(word.split(":")[0]);
    if (!isAllowed(code)) return false;
    // A colour of the larger palettes has its numbers behind it: they are not codes.
    if (EXTENDED.has(code) && !word.includes(":")) {
      const count = words[at + 1] === "5" ? 1 : words[at + 1] === "2" ? 3 : undefined;
      if (count === undefined || words.length <= at + 1 + count) return false;
      const numbers = words.slice(at + 2, at + 2 + count);
      if (!numbers.every((number) => /^\d{0,3}$/.test(number))) return false;
      at += 1 + count;
    }
  }
  return true;
}

/** Foreground, background and the colour of underlines. */
const EXTENDED: ReadonlySet<number> = new Set([38, 48, 58]);
const CONCEALED = 8;
const RANGES: readonly (readonly [number, number])[] = [
  [0, 9],
  [21, 27],
  [29, 49],
  [51, 55],
  [58, 59],
  [90, 97],
  [100, 107],
];

function isAllowed(code: number): boolean {
  return code !== CONCEALED && RANGES.some(([from, to]) => code >= from && code <= to);
}

/**
 * Characters that a terminal would act on or not show: controls except line feed and tab, C1, bidi and other format
 * characters, zero-width ones, line separators. The two variation selectors for emoji are allowed.
 */
const ACTIVE = /(?!\t|\n|\ufe0e|\ufe0f)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

/** Includes line and paragraph separators, and what turns the direction of a text. */
const CONTROL = /[\p{Cc}\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/u;

/** Whether a name has characters that could make a list of names look like another one. */
export function hasControls(text: string): boolean {
  return CONTROL.test(text);
}

/** Replaces characters that control a terminal by visible escapes (`\x1b`, `\u202e`); line feeds and tabs stay. */
export function toInert(text: string): string {
  return text.replace(ACTIVE, escapeCharacter);
}

/** As `toInert`, on one line: for messages and table cells. */
export function toInertLine(text: string): string {
  return toInert(text).replace(/[\n\t]/g, escapeCharacter);
}

function escapeCharacter(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  const short = new Map([
    [8, "\\b"],
    [9, "\\t"],
    [10, "\\n"],
    [13, "\\r"],
  ]).get(code);
  if (short !== undefined) return short;
  if (code < 0x80) return escapeByte(code);
  return code > 0xffff ? `\\u{${code.toString(16)}}` : `\\u${code.toString(16).padStart(4, "0")}`;
}

/** The visible form of a byte that is not part of a character. */
export function escapeByte(byte: number): string {
  return `\\x${byte.toString(16).padStart(2, "0")}`;
}

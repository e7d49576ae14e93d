/** Colours by meaning; each returns the text unchanged if colours are off. */
export interface Style {
  good(text: string): string;
  bad(text: string): string;
  warn(text: string): string;
  dim(text: string): string;
  bold(text: string): string;
}

/** Colours for an output: only on a terminal, and not with NO_COLOR or TERM=dumb. */
export function createStyle(
  output: { readonly isTTY?: boolean },
  env: Readonly<Record<string, string | undefined>>,
): Style {
  const isColoured = hasColours(output, env);
  const paint = (on: number, off: number) => (text: string) => (isColoured ? `\x1b[${on}m${text}\x1b[${off}m` : text);
  return { good: paint(32, 39), bad: paint(31, 39), warn: paint(33, 39), dim: paint(2, 22), bold: paint(1, 22) };
}

/** Whether an output shows colours: a terminal, unless NO_COLOR or TERM=dumb says otherwise. */
export function hasColours(
  output: { readonly isTTY?: boolean },
  env: Readonly<Record<string, string | undefined>>,
): boolean {
  return output.isTTY === true && !env["NO_COLOR"] && env["TERM"] !== "dumb";
}

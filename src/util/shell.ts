/** Turns an argument list into one line that a POSIX shell reads back as exactly those arguments. */
export function shellQuote(argv: readonly string[]): string {
  if (argv.length === 0) throw new TypeError("Empty argv: a command needs at least a program name");
  return argv.map(quote).join(" ");
}

/** The same line for people: only what needs quotes has them. */
export function showCommand(argv: readonly string[]): string {
  return argv.map((arg, index) => (/^[\w@%+=:,./-]+$/.test(arg) ? arg : quote(arg, index))).join(" ");
}

function quote(arg: string, index: number): string {
  if (typeof arg !== "string") throw new TypeError(`argv[${index}] must be a string, got ${typeof arg}`);
  if (arg.includes("\0")) throw new TypeError(`argv[${index}] contains a NUL byte: ${JSON.stringify(arg)}`);
  return `'${arg.replaceAll("'", "'\\''")}'`;
}

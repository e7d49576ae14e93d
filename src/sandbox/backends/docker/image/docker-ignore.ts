import { posix } from "node:path";

/** What to do with a path: send it, leave it out, or leave out the directory but look below it. */
export type Selection = "take" | "enter" | "skip";

interface Rule {
  readonly isException: boolean;
  readonly pattern: RegExp;
}

/**
 * Reads a `.dockerignore` and returns a function that decides about each path of a context as the docker command does: the
 * last rule that matches the path, or a directory above it, wins. The files in `always` are sent regardless.
 */
export function parseDockerIgnore(
  text: string,
  always: readonly string[] = [],
): (path: string, isDirectory: boolean) => Selection {
  const rules = text.split(/\r?\n/).flatMap(toRule);
  const hasExceptions = rules.some(({ isException }) => isException);
  return (path, isDirectory) => {
    if (always.includes(path) || !isIgnored(path, rules)) return "take";
    const leadsOn = isDirectory && (hasExceptions || always.some((file) => file.startsWith(`${path}/`)));
    return leadsOn ? "enter" : "skip";
  };
}

function isIgnored(path: string, rules: readonly Rule[]): boolean {
  let ignored = false;
  for (const { isException, pattern } of rules) {
    if (isException === ignored && pattern.test(path)) ignored = !isException;
  }
  return ignored;
}

function toRule(line: string): Rule[] {
  const text = line.startsWith("#") ? "" : line.replace(/^\uFEFF/, "").trim();
  const isException = text.startsWith("!");
  const written = isException ? text.slice(1).trim() : text;
  if (written === "") return [];
  const glob = posix.normalize(written).replace(/^\/+|\/+$/g, "");
  if (glob === "" || glob === ".") return [];
  return [{ isException, pattern: toPattern(glob) }];
}

/** A rule that names a directory applies to everything below it. */
function toPattern(glob: string): RegExp {
  let source = "";
  for (let at = 0; at < glob.length; at++) {
    const char = glob.charAt(at);
    if (glob.startsWith("**", at)) {
      const isWhole = glob.charAt(at + 2) === "/";
      source += isWhole ? "(?:.*/)?" : ".*";
      at += isWhole ? 2 : 1;
    } else if (char === "*") source += "[^/]*";
    else if (char === "?") source += "[^/]";
    else if (char === "[") {
      const end = glob.indexOf("]", at + 2);
      source += end === -1 ? "\\[" : toClass(glob.slice(at + 1, end));
      if (end !== -1) at = end;
    } else if (char === "\\" && at + 1 < glob.length) source += literal(glob.charAt(++at));
    else source += literal(char);
  }
  return new RegExp(`^${source}(?:/.*)?$`, "s");
}

function toClass(body: string): string {
  const isNegated = body.startsWith("^");
  const members = (isNegated ? body.slice(1) : body).replace(/[[\]\\^]/g, "\\$&");
  return `[${isNegated ? "^" : ""}${members}]`;
}

function literal(char: string): string {
  return /[\\^$.*+?()[\]{}|/]/.test(char) ? `\\${char}` : char;
}

const SPECIAL = /[.+^$()|[\]\\]/;

/** Turns a glob into a regular expression over paths with `/`: `*`, `?`, `**`, and `{a,b}`. */
export function globToRegExp(glob: string): RegExp {
  const pattern = glob.replace(/^\.\//, "").replace(/\/$/, "/**");
  let source = "";
  let depth = 0;
  for (let at = 0; at < pattern.length; at += 1) {
    const letter = pattern[at] ?? "";
    if (letter === "*" && pattern[at + 1] === "*") {
      const isWhole = pattern[at + 2] === "/";
      source += isWhole ? "(?:[^/]+/)*" : ".*";
      at += isWhole ? 2 : 1;
    } else if (letter === "*") source += "[^/]*";
    else if (letter === "?") source += "[^/]";
    else if (letter === "{") {
      depth += 1;
      source += "(?:";
    } else if (letter === "}" && depth > 0) {
      depth -= 1;
      source += ")";
    } else if (letter === "," && depth > 0) source += "|";
    else source += SPECIAL.test(letter) || letter === "{" || letter === "}" ? `\\${letter}` : letter;
  }
  return new RegExp(`^${source}${")".repeat(depth)}$`, "su");
}

/** Returns a function that tests whether a path, or a directory above it, matches one of the globs. */
export function createPathMatcher(globs: readonly string[]): (path: string) => boolean {
  const patterns = globs.map(globToRegExp);
  return (path) => {
    for (let part = path; part !== ""; part = part.slice(0, Math.max(0, part.lastIndexOf("/")))) {
      if (patterns.some((pattern) => pattern.test(part))) return true;
    }
    return false;
  };
}

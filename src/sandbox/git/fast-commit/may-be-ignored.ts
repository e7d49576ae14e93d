/** As UTF-8 has it, one character a byte. */
const BYTE_ORDER_MARK = /^\u00ef\u00bb\u00bf/;

/**
 * Whether a rule of ignore files may be about a path, one character a byte. Where it says no, git would not ignore the path; it says yes of more
 * than git would: of what a later rule takes back, and of what only looks alike.
 */
export function mayBeIgnored(path: string, rules: string): boolean {
  const names = path.split("/");
  return rules.split("\n").some((line) => {
    const rule = line.replace(/\r$/, "").replace(BYTE_ORDER_MARK, "");
    if (rule === "" || /^[#!]/.test(rule)) return false;
    const parts = rule.split("/").filter((part) => part !== "" && part !== "**");
    return parts.every((part) => {
      const pattern = looserPattern(part);
      return names.some((name) => pattern.test(name));
    });
  });
}

/** Matches whatever the part of a rule could match, and more. */
function looserPattern(part: string): RegExp {
  // Sets and escapes have rules of their own; what follows the first of them is anything.
  const [plain = "", ...more] = part.replace(/ +$/, "").split(/[[\\]/);
  const wild = plain
    .replace(/[.+^${}()|\]]/g, "\\$&")
    .replace(/\*+/g, "[^]*")
    .replaceAll("?", "[^]");
  return new RegExp(`^${wild}${more.length > 0 ? "[^]*" : " *"}$`, "i");
}

/** In UTF-8, one character per byte. */
const BYTE_ORDER_MARK = /^\u00ef\u00bb\u00bf/;

/** Whether a rule of ignore files may match a path, one character per byte. True for more paths than git ignores, never for fewer. */
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

/** A pattern for whatever a part of a rule could match, and more. */
function looserPattern(part: string): RegExp {
  // Sets and escapes have their own rules; from the first one on, anything matches.
  const [plain = "", ...more] = part.replace(/ +$/, "").split(/[[\\]/);
  const wild = plain
    .replace(/[.+^${}()|\]]/g, "\\$&")
    .replace(/\*+/g, "[^]*")
    .replaceAll("?", "[^]");
  return new RegExp(`^${wild}${more.length > 0 ? "[^]*" : " *"}$`, "i");
}

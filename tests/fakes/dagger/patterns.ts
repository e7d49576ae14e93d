import { lstatSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";

/** Removes what a path of `withoutFile`, `withoutFiles` or `withoutDirectory` means: with a `*` in it, an engine takes it for a pattern. */
export function removeMatching(tree: string, path: string): void {
  const names = path.split("/").filter((name) => name !== "" && name !== ".");
  if (!path.includes("*")) {
    rmSync(join(tree, ...names), { recursive: true, force: true });
    return;
  }
  const first = names.findIndex(isPattern);
  // An escaped star is no pattern for an engine, and it does not take the escape away either.
  if (first < 0) {
    rmSync(join(tree, ...names), { recursive: true, force: true });
    return;
  }
  const base = join(tree, ...names.slice(0, first));
  const pattern = new RegExp(`^${toExpression(names.slice(first).join("/"))}$`, "s");
  const visit = (at: string): void => {
    for (const name of readdirSync(join(base, at))) {
      const inner = at === "" ? name : `${at}/${name}`;
      if (pattern.test(inner)) rmSync(join(base, inner), { recursive: true, force: true });
      else if (lstatSync(join(base, inner)).isDirectory()) visit(inner);
    }
  };
  visit("");
}

function isPattern(name: string): boolean {
  return /[*?[]/.test(name.replace(/\\./gs, ""));
}

/** Go's `filepath.Match`: `*`, `?`, `[a-z]`, `[^a-z]` and `\` before any character. */
function toExpression(pattern: string): string {
  return pattern.replace(/\\(.)|\*|\?|\[(\^?)((?:\\.|[^\]\\])+)\]|./gs, (all, escaped, not, among) => {
    if (escaped !== undefined) return quoted(escaped as string);
    if (all === "*") return "[^/]*";
    if (all === "?") return "[^/]";
    if (among === undefined) return quoted(all);
    return `[${not}${(among as string).replace(/\\?([^-])/gs, (_, one: string) => quoted(one))}]`;
  });
}

function quoted(character: string): string {
  return character.replace(/[\\^$.*+?()[\]{}|/-]/, "\\$&");
}

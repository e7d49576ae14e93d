import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, sep } from "node:path";

/** The licences of the packages that these modules are of, as a text to ship beside them; empty if there are none. */
export function licencesOf(moduleIds) {
  const folders = new Set(moduleIds.flatMap((id) => packageFolder(id.replace(/^\0/, "").split("?")[0]) ?? []));
  const texts = [...folders].sort().map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
    const text = file === undefined ? `Licence: ${license}` : readFileSync(join(folder, file), "utf8").trim();
    return `${name} ${version}\n\n${text}\n`;
  });
  if (texts.length === 0) return "";
  return `Glovebox contains parts of these packages.\n\n${texts.join(`\n${"-".repeat(80)}\n\n`)}`;
}

/** The folder of the package that a module belongs to; undefined for our own. */
function packageFolder(path) {
  const parts = path.split(sep);
  const at = parts.lastIndexOf("node_modules");
  if (at === -1) return undefined;
  const folder = parts.slice(0, at + (parts[at + 1]?.startsWith("@") ? 3 : 2)).join(sep);
  return existsSync(join(folder, "package.json")) ? folder : undefined;
}

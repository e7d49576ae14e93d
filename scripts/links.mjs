import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { decoded, externalFault } from "./site/addresses.mjs";
import { anchorsIn, linksIn } from "./site/markdown.mjs";

/**
 * Checks the links of every document: `links.mjs [folder]`. A file must exist below the folder and, if it is a document, have the
 * anchor. Links to other sites are checked by their syntax, and never opened.
 */
const here = dirname(dirname(fileURLToPath(import.meta.url)));
const root = resolve(process.argv[2] ?? here);
/** Folders without documents of ours. */
const LEFT_OUT = new Set(["node_modules", "dist", "coverage", "tests", ".pages", ".git", ".sandbox"]);

const faults = [];
const anchors = new Map();
const documents = findDocuments(root);
let count = 0;
for (const file of documents) {
  for (const { link, line } of linksIn(readFileSync(file, "utf8"))) {
    count += 1;
    const fault = /^(?:[a-z][a-z+.-]*:|\/\/)/i.test(link) ? externalFault(link) : internalFault(file, link);
    if (fault !== undefined) faults.push(`${relative(root, file)}:${line} links to "${link}": ${fault}`);
  }
}
for (const fault of faults) console.error(fault);
console.log(`${count} links in ${documents.length} documents checked, ${faults.length} errors`);
process.exitCode = faults.length > 0 ? 1 : 0;

function findDocuments(folder) {
  return readdirSync(folder, { withFileTypes: true })
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) return LEFT_OUT.has(entry.name) ? [] : findDocuments(path);
      return entry.isFile() && entry.name.endsWith(".md") ? [path] : [];
    });
}

function internalFault(from, link) {
  if (link === "") return "there is no address";
  if (link.startsWith("/")) return "write it relative to the document";
  const [to, anchor] = link.split("#").map(decoded);
  const path = to === "" ? from : join(dirname(from), to);
  if (!`${path}${sep}`.startsWith(`${root}${sep}`)) return "it leads out of the repository";
  if (!existsSync(path)) return "there is no such file";
  if (anchor === undefined) return undefined;
  if (!path.endsWith(".md")) return "only a document has anchors";
  if (!anchors.has(path)) anchors.set(path, anchorsIn(readFileSync(path, "utf8")));
  return anchors.get(path).has(anchor) ? undefined : "the document has no such heading";
}

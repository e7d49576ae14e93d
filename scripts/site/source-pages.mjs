import { readdirSync } from "node:fs";
import { extname, join, posix } from "node:path";

const LANGUAGES = {
  ".ts": "ts",
  ".mjs": "js",
  ".js": "js",
  ".c": "c",
  ".h": "c",
  ".json": "json",
  ".yaml": "yaml",
  ".sh": "sh",
};
/** A wide page of no order, without an outline; the search has the documents instead. */
const FRONT_MATTER = "---\naside: false\noutline: false\nsearch: false\nprev: false\nnext: false\n---\n\n";

/** The page of a file that is no document: its text, highlighted. */
export function sourcePage(path, text) {
  const longest = Math.max(2, ...[...text.matchAll(/`{3,}/g)].map(([ticks]) => ticks.length));
  const fence = "`".repeat(longest + 1);
  return `${FRONT_MATTER}# ${path.split("/").at(-1)}\n\n\`${path}\`\n\n${fence}${LANGUAGES[extname(path)] ?? "txt"}\n${text.trimEnd()}\n${fence}\n`;
}

/** The page of a folder: its files, each with the documents that show it or link to it. `documents` has their paths, titles and texts. */
export function folderPage(root, path, documents) {
  const folder = path.split("/").at(-1);
  const names = readdirSync(join(root, path), { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => name)
    .sort();
  const rows = names.map((name) => {
    const users = documents.filter(({ text }) => text.includes(`${path}/${name}`));
    const links = users.map((each) => `[${each.title}](${posix.relative(posix.dirname(path), each.path)})`);
    return `- [${name}](${folder}/${name})${links.length > 0 ? `, in ${links.join(", ")}` : ""}`;
  });
  return `# ${folder[0].toUpperCase()}${folder.slice(1)}\n\nThe files of \`${path}\`, and the pages that show them.\n\n${rows.join("\n")}\n`;
}

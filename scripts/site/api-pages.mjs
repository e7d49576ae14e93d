import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { typedEntries } from "../bundle.mjs";
import { declarationsOf } from "../declarations.mjs";
import { apiTopics, MAIN_NAMES } from "./api-topics.mjs";
import { fillComments, splitComments } from "./code-comments.mjs";
import { escapeText } from "./markdown.mjs";

const ROOT = "index";
const KINDS = {
  function: "Functions",
  class: "Classes",
  constant: "Constants",
  interface: "Interfaces",
  type: "Types",
};
/** Fits into the text column of the site without scrolling. */
const WIDTH = 80;

/**
 * Writes the API reference as Markdown: an index, and a page for each entry point of package.json with every exported name, its
 * signature and its comments. What the root entry has too is described there only, as in the API report. Returns the pages as
 * `{ path, title, text }`.
 */
export async function apiPages({ root, name, exports }) {
  const entries = await Promise.all(typedEntries.map((entry) => readEntry(entry, { root, name, exports })));
  const rootEntry = entries.find(({ entry }) => entry === ROOT);
  for (const each of entries) each.items = each === rootEntry ? each.all : each.all.filter(isNewIn(rootEntry));
  const pages = entries.map((each) => pageOf(each, rootEntry));
  const list = entries.map(
    (each) =>
      `- [\`${each.specifier}\`](${each.file}.md): ${each.exported.length} names, such as ${firstNames(each.exported)
        .map((shown) => `\`${shown}\``)
        .join(", ")}`,
  );
  const intro = "What each entry point of the package exports, from the comments in the source.";
  const text = `# API reference\n\n${intro}\n\n${list.join("\n")}\n`;
  return [{ path: "api/index.md", title: "API reference", text }, ...pages];
}

async function readEntry(entry, { root, name, exports }) {
  const [path] = Object.entries(exports).find(([, { types }]) => types === `./dist/src/${entry}.d.ts`);
  const specifier = path.replace(/^\./, name);
  const { declarations, exported } = await declarationsOf(entry);
  const names = new Map([...exported].map(([shown, local]) => [local, shown]));
  const taken = new Set([...names.values(), ...declarations.map((each) => each.name)]);
  const plain = (local) => local.replace(/\$\d+$/, "");
  const code = await format(root, declarations);
  const all = declarations
    .map((each, index) => ({
      ...each,
      isExported: names.has(each.name),
      shown: names.get(each.name) ?? (taken.has(plain(each.name)) ? each.name : plain(each.name)),
      code: code[index],
    }))
    .filter(({ kind }) => kind in KINDS);
  const renamed = all.filter(({ shown, name: local }) => shown !== local);
  for (const each of all) each.code = renamed.reduce(withName, each.code);
  return {
    entry,
    specifier,
    file: path === "." ? name : path.slice(2).replaceAll("/", "-"),
    all,
    exported: all.filter(({ isExported }) => isExported),
  };
}

function withName(code, { name, shown }) {
  return code.replaceAll(new RegExp(`(?<![\\w$])${name.replaceAll("$", "\\$")}(?![\\w$])`, "g"), () => shown);
}

function isNewIn(rootEntry) {
  const known = new Set(rootEntry.all.map(({ text }) => text));
  return ({ text }) => !known.has(text);
}

function pageOf({ entry, specifier, file, items, exported }, rootEntry) {
  const anchors = new Map([
    ...anchorsOf(rootEntry.all, entry === ROOT ? "" : `${rootEntry.file}.md`),
    ...anchorsOf(items, ""),
  ]);
  const own = items.filter(({ isExported }) => isExported);
  const topics = groupBy(own, ({ source }) => apiTopics[entry]?.find(([, paths]) => paths.test(source))?.[0]);
  const order = [...(apiTopics[entry] ?? []).map(([title]) => title), undefined].filter((title) => topics.has(title));
  const other = order.length > 1 ? "Other" : "Exports";
  const sections = order.map((title) => ({ title: title ?? other, items: sortByKind(topics.get(title)) }));
  const used = findUsed(sections, items, (each) => !each.isExported);
  if (used.length > 0) sections.push({ title: "Types that signatures use", items: used, isInternal: true });
  const elsewhere = exported.filter(({ text }) => !items.some((each) => each.text === text));
  const values = own.filter(({ kind }) => ["function", "class", "constant"].includes(kind));
  const text = [
    `# \`${specifier}\``,
    values.length > 0 ? `\`\`\`js\nimport { ${importable(values)} } from "${specifier}";\n\`\`\`` : "",
    "## Index",
    ...sections.map((each) => indexOf(each, anchors)),
    elsewhere.length > 0
      ? `**From [\`${rootEntry.specifier}\`](${rootEntry.file}.md)**\n\n${elsewhere.map(({ name }) => anchors.get(name)).join(" ")}`
      : "",
    ...sections.map((each) => sectionOf(each, anchors)),
  ];
  return { path: `api/${file}.md`, title: specifier, text: `${text.filter(Boolean).join("\n\n")}\n` };
}

/** All names if they are few, else the ones that a reader should see first. */
function importable(values) {
  const names = values.map(({ shown }) => shown);
  return names.length > 4 ? firstNames(values).join(", ") : names.join(", ");
}

function firstNames(items) {
  const names = sortByKind(items).map(({ shown }) => shown);
  const chosen = MAIN_NAMES.filter((each) => names.includes(each));
  return chosen.length > 0 ? chosen : names.slice(0, 3);
}

/** Declared names to what they are called on the page and where. */
function anchorsOf(items, page) {
  return items.map(({ name, shown }) => [name, `[\`${shown}\`](${page}#${shown})`]);
}

function groupBy(items, keyOf) {
  const groups = new Map();
  for (const each of items) groups.set(keyOf(each), [...(groups.get(keyOf(each)) ?? []), each]);
  return groups;
}

function sortByKind(items) {
  const order = Object.keys(KINDS);
  return items.toSorted((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind) || compare(a.shown, b.shown));
}

function compare(a, b) {
  return a.toLowerCase() < b.toLowerCase() ? -1 : 1;
}

/** The declarations that those of `sections` name, directly or through others. */
function findUsed(sections, items, isWanted) {
  const found = new Set(sections.flatMap((section) => section.items));
  const count = found.size;
  for (const each of found)
    for (const used of items) if (isWanted(used) && namesIn(each).has(used.name)) found.add(used);
  return [...found].slice(count).toSorted((a, b) => compare(a.shown, b.shown));
}

function namesIn({ text, name }) {
  const names = new Set(text.match(/[A-Za-z_$][\w$]*/g));
  names.delete(name);
  return names;
}

function indexOf({ title, items }, anchors) {
  return `**${title}**\n\n${items.map(({ name }) => anchors.get(name)).join(" ")}`;
}

function sectionOf({ title, items, isInternal }, anchors) {
  const note = isInternal ? "These have no exported name of their own." : "";
  return [`## ${title}`, note, ...items.map((each) => itemOf(each, anchors))].filter(Boolean).join("\n\n");
}

function itemOf(item, anchors) {
  const { shown, kind, doc, code } = item;
  const used = [...namesIn(item)].filter((name) => anchors.has(name)).toSorted(compare);
  return [
    `### ${shown} <Badge type="info" text="${kind}" /> {#${shown}}`,
    doc === undefined ? "" : escapeText(doc),
    `\`\`\`ts\n${code}\n\`\`\``,
    used.length > 0 ? `Uses ${used.map((name) => anchors.get(name)).join(", ")}.` : "",
  ]
    .filter(Boolean)
    .join("\n\n");
}

/** Formats declarations for the width of the page, in one run. */
async function format(root, declarations) {
  const text = declarations.map(({ withComments }) => `// §\n${splitComments(withComments)}`).join("\n\n");
  const biome = join(root, "node_modules", ".bin", "biome");
  const args = ["format", `--line-width=${WIDTH}`, "--stdin-file-path=page.d.ts"];
  const run = promisify(execFile)(biome, args, { cwd: root, maxBuffer: 2 ** 26 });
  run.child.stdin.end(text);
  const { stdout } = await run;
  const parts = stdout.split(/^\/\/ §\n/m).slice(1);
  return parts.map((part) => fillComments(part.trim(), WIDTH).replace(/^declare /, ""));
}

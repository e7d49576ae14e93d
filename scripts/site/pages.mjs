import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { decoded } from "./addresses.mjs";
import { apiPages } from "./api-pages.mjs";
import { linksIn, replaceLinks, titleOf } from "./markdown.mjs";
import { navigationOf, readNavigation } from "./navigation.mjs";
import { folderPage, sourcePage } from "./source-pages.mjs";

/**
 * Writes the pages of the website into the folder `to`: every document of the navigation under its path in the repository, every
 * other file that they link to as a page of code, the API reference and the landing page; and `site.json` for the generator.
 */
export async function writePages(root, to) {
  const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const navigation = readNavigation(root);
  const api = await apiPages({ root, ...manifest });
  const listed = navigation.flatMap(({ pages }) => pages).filter(({ page }) => page !== "api");
  const documents = listed
    .filter(({ page }) => page.endsWith(".md"))
    .map(({ page, title }) => ({ path: page, title, text: readFileSync(join(root, page), "utf8") }))
    .map((each) => ({ ...each, title: each.title ?? titleOf(each.text) }));
  const files = collectPages(
    root,
    listed.map(({ page }) => page),
    documents,
  );
  rmSync(to, { recursive: true, force: true });
  for (const { path, text } of api) write(to, path, text);
  for (const [path, text] of files) write(to, pathOf(path, root), text);
  write(to, "index.md", homePage(root));
  const titles = (path) => titleOf(files.get(path) ?? "") ?? path;
  const site = {
    title: "Glovebox",
    description: manifest.description,
    version: manifest.version,
    ...navigationOf(navigation, { titles, pathOf: (path) => pathOf(path, root), api }),
  };
  writeFileSync(join(to, "site.json"), `${JSON.stringify(site, null, 2)}\n`);
}

function write(to, path, text) {
  mkdirSync(dirname(join(to, path)), { recursive: true });
  writeFileSync(join(to, path), text);
}

/** Documents keep their path. The page of another file is below `source`. */
function pathOf(path, root) {
  if (path.endsWith(".md")) return path;
  return statSync(join(root, path)).isDirectory() ? `source/${path}/index.md` : `source/${path}.md`;
}

/** The text of each page, by the path of the file that it shows: those named, and all that they link to. */
function collectPages(root, named, documents) {
  const pages = new Map();
  const waiting = [...named];
  for (const path of waiting) {
    if (pages.has(path)) continue;
    const text = pageText(root, path, documents);
    const links = linksIn(text).flatMap(({ link }) => targetOf(root, path, link)?.path ?? []);
    waiting.push(...links);
    pages.set(
      path,
      replaceLinks(text, (link) => {
        const target = targetOf(root, path, link);
        if (target === undefined) return undefined;
        const from = posix.dirname(pathOf(path, root));
        return `${posix.relative(from, pathOf(target.path, root))}${target.anchor}`;
      }),
    );
  }
  return pages;
}

function pageText(root, path, documents) {
  if (statSync(join(root, path)).isDirectory()) return folderPage(root, path, documents);
  const text = readFileSync(join(root, path), "utf8");
  return path.endsWith(".md") ? text.replaceAll(/<!--[\s\S]*?-->\n*/g, "") : sourcePage(path, text);
}

/** The file that a link leads to, or `undefined` for another address and for a place in the same document. */
function targetOf(root, from, link) {
  if (/^(?:[a-z][a-z+.-]*:|#|\/\/)/i.test(link)) return undefined;
  const [to, anchor] = link.split("#");
  const path = posix.normalize(posix.join(posix.dirname(from), decoded(to))).replace(/\/$/, "");
  if (!existsSync(join(root, path))) throw new Error(`${from} links to ${link}, which does not exist`);
  return { path, anchor: anchor === undefined ? "" : `#${anchor}` };
}

/** The landing page: what `site/home.json` says, then the first program and the first terminal of the README. */
function homePage(root) {
  const readme = readFileSync(join(root, "README.md"), "utf8");
  const front = JSON.parse(readFileSync(join(root, "site", "home.json"), "utf8"));
  const shown = [
    ["In a program", "ts"],
    ["In a terminal", "console"],
  ].map(([title, language]) => {
    const block = new RegExp(`^\`\`\`${language}\\n[\\s\\S]*?^\`\`\`$`, "m").exec(readme)?.[0];
    return block === undefined ? "" : `## ${title}\n\n${block}\n\n`;
  });
  // JSON is YAML, too.
  return `---\n${JSON.stringify(front)}\n---\n\n<div class="first-programs">\n\n${shown.join("")}</div>\n`;
}

import { readFileSync } from "node:fs";
import { join } from "node:path";

/** Reads site/navigation.json: sections with pages, each a path in the repository, or `api`. */
export function readNavigation(root) {
  const sections = JSON.parse(readFileSync(join(root, "site", "navigation.json"), "utf8"));
  return sections.map(({ title, pages }) => ({
    title,
    pages: pages.map((each) => (typeof each === "string" ? { page: each } : each)),
  }));
}

/** The bar at the top and the list at the side. `titles` names a page that the navigation does not name. */
export function navigationOf(sections, { titles, pathOf, api }) {
  const linkOf = (path) => `/${path.replace(/(?:(?<=^|\/)index)?\.md$/, "")}`;
  const itemOf = ({ page, title }) => {
    if (page !== "api") return { text: title ?? titles(page), link: linkOf(pathOf(page)) };
    const [index, ...entries] = api;
    const items = entries.map((each) => ({ text: each.title, link: linkOf(each.path) }));
    return { text: title ?? index.title, link: linkOf(index.path), collapsed: true, items };
  };
  const sidebar = sections.map(({ title, pages }) => ({ text: title, items: pages.map(itemOf) }));
  const nav = sidebar.map(({ text, items }) => ({
    text,
    link: items[0].link,
    activeMatch: `^(?:${items.map(({ link }) => link).join("|")})`,
  }));
  return { nav, sidebar };
}

import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join, posix } from "node:path";
import { decoded, externalFault } from "./addresses.mjs";

/**
 * Checks a built website. Each link inside it leads to a page or file that exists and has the anchor; other sites are never asked.
 * No anchor is there twice, and no expression of a template is left.
 */
export function checkBuilt(folder, base = "/") {
  const names = readdirSync(folder, { recursive: true }).filter((name) => name.endsWith(".html"));
  const pages = new Map(names.map((name) => [name, readPage(join(folder, name))]));
  const faults = [];
  let links = 0;
  for (const [name, { targets, ids, text }] of pages) {
    // What the generator or its theme did not fill in.
    const [expression] = /\{\{.*?\}\}/.exec(text) ?? [];
    if (expression !== undefined) faults.push(`${name} shows ${expression}`);
    for (const id of new Set(ids.filter((each, index) => ids.indexOf(each) !== index))) {
      faults.push(`${name} has the anchor ${id} twice`);
    }
    for (const target of targets) {
      links += 1;
      const fault = faultOf(target, name);
      if (fault !== undefined) faults.push(`${name} links to ${target}: ${fault}`);
    }
  }
  return { pages: pages.size, links, faults };

  function faultOf(target, from) {
    if (/^[a-z][a-z+.-]*:/i.test(target)) return externalFault(target);
    const [to, anchor] = target.split("#").map(decoded);
    if (to.startsWith("/") && !to.startsWith(base)) return `it is not below ${base}`;
    const path = to.startsWith("/") ? to.slice(base.length) : posix.join(posix.dirname(from), to);
    const file = to === "" ? from : fileOf(path.split("?")[0]);
    if (file === undefined) return "there is no such page";
    if (!anchor || !file.endsWith(".html")) return undefined;
    return pages.get(file).ids.includes(anchor) ? undefined : "the page has no such anchor";
  }

  function fileOf(path) {
    // A host without rules of its own serves a folder's index, and adds no ending.
    const candidates = [path, posix.join(path, "index.html")];
    return candidates.find((each) => existsSync(join(folder, each)) && statSync(join(folder, each)).isFile());
  }
}

function readPage(file) {
  const html = readFileSync(file, "utf8").replaceAll(/<script\b[\s\S]*?<\/script>/g, "");
  const decode = (text) => text.replaceAll("&amp;", "&").replaceAll("&quot;", '"').replaceAll("&#39;", "'");
  return {
    targets: [...html.matchAll(/<[^>]*?\s(?:href|src)="([^"]*)"/g)].map(([, target]) => decode(target)),
    text: html.replaceAll(/<(code|pre)\b[\s\S]*?<\/\1>|<[^>]*>/g, " "),
    ids: [...html.matchAll(/<[^>]*?\sid="([^"]*)"/g)].map(([, id]) => decode(id)),
  };
}

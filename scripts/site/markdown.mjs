/** A document without blocks and spans of code, in which nothing is a link or a heading; its lines keep their numbers. */
export function withoutCode(text) {
  const blank = (code) => code.replaceAll(/[^\n]/g, " ");
  return text
    .replaceAll(/^( *)(`{3,}|~{3,})[^\n]*\n[\s\S]*?^ *\2 *$/gm, blank)
    .replaceAll(/<!--[\s\S]*?-->/g, blank)
    .replaceAll(/(?<!`)(`+)(?!`)(?:(?!\n\n)[\s\S])*?(?<!`)\1(?!`)/g, blank);
}

/** Names a heading as GitHub does, so that links work there and on the site. */
export function slugOf(heading) {
  return heading
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{M}\p{N}\p{Pc}\s-]/gu, "")
    .replaceAll(/\s/g, "-");
}

/** The anchors of a document: its headings, those of the same name numbered, and the ids that it gives itself. */
export function anchorsIn(text) {
  const plain = withoutFences(text);
  const counts = new Map();
  const anchors = new Set();
  for (const [, heading] of plain.matchAll(/^#{1,6} +(.+?)(?: +#+)? *$/gm)) {
    const slug = slugOf(textOfHeading(heading));
    const count = counts.get(slug) ?? 0;
    counts.set(slug, count + 1);
    anchors.add(count === 0 ? slug : `${slug}-${count}`);
  }
  for (const [, id] of plain.matchAll(/<[^>]*?\bid="([^"]+)"/g)) anchors.add(id);
  return anchors;
}

function withoutFences(text) {
  return text.replaceAll(/^( *)(`{3,}|~{3,})[^\n]*\n[\s\S]*?^ *\2 *$/gm, (code) => code.replaceAll(/[^\n]/g, " "));
}

function textOfHeading(heading) {
  const plain = heading.replaceAll(/!?\[([^\]]*)\]\([^)]*\)/g, "$1").replaceAll(/[*`]/g, "");
  return plain.replaceAll(/(?<!\w)_([^_]+)_(?!\w)/g, "$1");
}

/** Every link and image of a document, with its line and where its target starts. Reference links count where they are defined. */
export function linksIn(text) {
  const plain = withoutCode(text);
  const inline = plain.matchAll(/\]\(\s*(?:<([^>]*)>|([^()\s]*(?:\([^()]*\)[^()\s]*)*))(?:\s+"[^"]*")?\s*\)/dg);
  const defined = plain.matchAll(/^ {0,3}\[[^\]]+\]:\s*(?:<([^>]*)>|(\S+))/dgm);
  const tags = plain.matchAll(/<(?:a|img)\b[^>]*?\b(?:href|src)=(?:"([^"]*)"|'([^']*)')/dg);
  return [...inline, ...defined, ...tags]
    .map(({ indices: [, first, second] }) => first ?? second)
    .map(([start, end]) => ({ start, link: text.slice(start, end), line: text.slice(0, start).split("\n").length }));
}

/** Replaces the target of each link by what `to` returns for it, where it returns something. */
export function replaceLinks(text, to) {
  const links = linksIn(text).toSorted((a, b) => b.start - a.start);
  return links.reduce((changed, { start, link }) => {
    return `${changed.slice(0, start)}${to(link) ?? link}${changed.slice(start + link.length)}`;
  }, text);
}

/** The title of a document: its first heading of the first level. */
export function titleOf(text) {
  const heading = /^# +(.+?) *$/m.exec(withoutFences(text))?.[1];
  return heading === undefined ? undefined : textOfHeading(heading);
}

/** Words as Markdown: what looks like a tag is text, but in code. */
export function escapeText(text) {
  return text
    .split(/(`+[^`]*`+)/)
    .map((part, index) => (index % 2 === 1 ? part : part.replaceAll("<", "&lt;")))
    .join("");
}

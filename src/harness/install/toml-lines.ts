/** The strings of a TOML document by their dotted name, `source.mirror.registry`; lists have one entry for each string. Everything else is left out. */
export function tomlStrings(text: string): { name: string; value: string }[] {
  const found: { name: string; value: string }[] = [];
  let table = "";
  let list: string | undefined;
  for (const line of text.split(/\r?\n/)) {
    const header = /^\s*\[\[?\s*([^\]]+?)\s*\]\]?\s*(?:#.*)?$/.exec(line)?.[1];
    if (header !== undefined && list === undefined) {
      table = `${unquoted(header)}.`;
      continue;
    }
    const [, key, rest = ""] =
      list === undefined ? (/^\s*([\w."'-]+)\s*=\s*(.*)$/.exec(line) ?? []) : [undefined, list, line];
    if (key === undefined) continue;
    const name = list ?? `${table}${unquoted(key)}`;
    const isInline = list === undefined && rest.startsWith("{");
    for (const [, inner, double, single] of rest.matchAll(/(?:([\w-]+)\s*=\s*)?(?:"([^"\\]*)"|'([^']*)')/g)) {
      found.push({ name: isInline && inner !== undefined ? `${name}.${inner}` : name, value: double ?? single ?? "" });
    }
    if (list === undefined) list = /^\[[^\]]*$/.test(rest) ? name : undefined;
    else if (rest.includes("]")) list = undefined;
  }
  return found;
}

function unquoted(name: string): string {
  return name.replace(/["']/g, "");
}

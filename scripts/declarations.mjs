import { SourceMap } from "node:module";
import { parseSync } from "rolldown/utils";
import { startTypes } from "./bundle.mjs";

/**
 * Reads the declarations of an entry point, sorted by name: imports first and the list of exports last. Each has its `text`
 * without comments, its text `withComments`, the comment above it as `doc`, its `kind` and the `source` that declares it.
 * `exported` maps each exported name to the declared one.
 */
export async function declarationsOf(entry) {
  const build = await startTypes([entry]);
  const { output } = await build.generate({ sourcemap: true });
  const { code, map } = output.find(({ type }) => type === "chunk");
  const { program, comments } = parseSync("report.d.ts", code);
  const sourceAt = locate(code, new SourceMap(JSON.parse(map.toString())));
  const withoutComments = ({ start, end }) => {
    const inside = comments.filter((comment) => comment.start >= start && comment.end <= end);
    return inside.reduceRight(
      (text, each) => text.slice(0, each.start - start) + text.slice(each.end - start),
      code.slice(start, end),
    );
  };
  const docOf = ({ start }) =>
    comments.findLast(
      ({ end, value }) => end <= start && /^\s*$/.test(code.slice(end, start)) && value.startsWith("*"),
    );
  const declarations = program.body.map((node) => ({
    name: nameOf(node),
    kind: kindOf(node),
    text: withoutComments(node),
    withComments: code.slice(node.start, node.end),
    doc: textOf(docOf(node)?.value),
    source: sourceAt(node.id ?? node.declarations?.[0].id ?? node),
  }));
  declarations.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  const exported = program.body
    .filter(({ type, declaration }) => type === "ExportNamedDeclaration" && declaration === null)
    .flatMap(({ specifiers }) => specifiers.map((each) => [each.exported.name, each.local.name]));
  return { declarations, exported: new Map(exported) };
}

/** Sorts imports first and the list of exports last. */
function nameOf({ type, id, declarations, source }) {
  if (type === "ImportDeclaration") return ` ${source.value}`;
  return (id ?? declarations?.[0].id)?.name ?? "~";
}

function kindOf({ type }) {
  const kinds = {
    TSDeclareFunction: "function",
    FunctionDeclaration: "function",
    ClassDeclaration: "class",
    VariableDeclaration: "constant",
    TSInterfaceDeclaration: "interface",
    TSTypeAliasDeclaration: "type",
  };
  return kinds[type] ?? "other";
}

/** The words of a comment, without its stars. */
function textOf(comment) {
  return comment
    ?.slice(1)
    .split("\n")
    .map((line) => line.replace(/^\s*\* ?/, ""))
    .join("\n")
    .trim();
}

/** Finds the file, relative to the root, in which a piece of the bundled code was written. */
function locate(code, map) {
  return ({ start }) => {
    const before = code.slice(0, start).split("\n");
    const { originalSource = "" } = map.findEntry(before.length - 1, before.at(-1).length);
    return originalSource.replace(/^(?:\.\.\/)+/, "");
  };
}

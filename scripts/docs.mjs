import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * Copies the TypeScript snippets of the README and the docs from programs that the tests run: `docs.mjs [--check] [folder]`.
 *
 * A block follows `<!-- snippet: examples/hello.ts -->` for a whole file, or `<!-- snippet: examples/hello.ts#name -->`
 * for the lines between `// #region name` and `// #endregion name`, all of them if there are several. With `--check` it writes nothing.
 */
const isCheck = process.argv.includes("--check");
const here = dirname(dirname(fileURLToPath(import.meta.url)));
const root = resolve(process.argv.slice(2).find((word) => !word.startsWith("-")) ?? here);
const BLOCK = /((?:<!-- snippet: (\S+) -->\n+)?^```(?:ts|typescript)\n)[\s\S]*?^```$/gm;
const WITHOUT_BLOCK = /^<!-- snippet: \S+ -->$(?!\n+```(?:ts|typescript)\n)/gm;

const faults = [];
let count = 0;
for (const file of documents()) {
  const text = readFileSync(file, "utf8");
  const fresh = text.replace(WITHOUT_BLOCK, "$&\n\n```ts\n```").replace(BLOCK, (block, start, source) => {
    count += 1;
    const program = cut(source, relative(root, file));
    return program === undefined ? block : `${start}${program}\`\`\``;
  });
  if (fresh === text) continue;
  if (isCheck) faults.push(`${relative(root, file)} has an outdated snippet: run npm run docs`);
  else writeFileSync(file, fresh);
}
for (const fault of faults) console.error(fault);
console.log(`${count} snippets${isCheck ? " checked" : ""}, ${faults.length} errors`);
process.exit(faults.length > 0 ? 1 : 0);

function documents() {
  const docs = readdirSync(join(root, "docs")).filter((name) => name.endsWith(".md"));
  return [join(root, "README.md"), ...docs.sort().map((name) => join(root, "docs", name))];
}

function cut(source, document) {
  if (source === undefined) {
    faults.push(`${document} has a block of TypeScript without a snippet comment`);
    return undefined;
  }
  const [path, name] = source.split("#");
  const program = readFileSync(join(root, path), "utf8");
  if (name === undefined) return program;
  const region = new RegExp(`^[ \\t]*// #region ${name}\\n([\\s\\S]*?)^[ \\t]*// #endregion ${name}$`, "gm");
  const parts = [...program.matchAll(region)].map(([, part]) => part);
  if (parts.length > 0) return withoutIndent(parts.join(""));
  faults.push(`${document} uses the region ${name}, which ${path} does not have`);
  return undefined;
}

function withoutIndent(text) {
  const lines = text.split("\n");
  const indents = lines.filter((line) => line !== "").map((line) => line.length - line.trimStart().length);
  return lines.map((line) => line.slice(Math.min(...indents))).join("\n");
}

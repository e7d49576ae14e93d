import { execFile } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { typedEntries } from "./bundle.mjs";
import { declarationsOf } from "./declarations.mjs";

/**
 * Writes the API report: `api/<entry>.d.ts` has every name that an entry point of package.json exports, with its signature and
 * the types that the signature needs, sorted and without comments. Declarations that the root entry has too are only there.
 * `api.mjs [--check]`: with `--check` it writes nothing and fails if the report is out of date.
 */
const root = dirname(dirname(fileURLToPath(import.meta.url)));
const folder = join(root, "api");
const ROOT = "index";

const declared = new Map(await Promise.all(typedEntries.map(async (entry) => [entry, await textsOf(entry)])));
const reports = new Map(await Promise.all(typedEntries.map(async (entry) => [`${entry}.d.ts`, await reportOf(entry)])));
const written = existsSync(folder)
  ? readdirSync(folder, { recursive: true }).filter((name) => name.endsWith(".ts"))
  : [];
if (process.argv.includes("--check")) {
  const names = new Set([...reports.keys(), ...written]);
  const changed = [...names].filter((name) => !written.includes(name) || reports.get(name) !== read(name));
  for (const name of changed) console.error(`api/${name} is out of date: run npm run api and review the diff`);
  process.exitCode = changed.length > 0 ? 1 : 0;
} else {
  rmSync(folder, { recursive: true, force: true });
  for (const [name, text] of reports) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
}

function read(name) {
  return readFileSync(join(folder, name), "utf8");
}

async function reportOf(entry) {
  const known = entry === ROOT ? [] : declared.get(ROOT);
  const own = declared.get(entry).filter((text) => !known.includes(text));
  return await format(own.join("\n\n"));
}

async function textsOf(entry) {
  const { declarations } = await declarationsOf(entry);
  return declarations.map(({ text }) => text);
}

async function format(text) {
  const biome = join(root, "node_modules", ".bin", "biome");
  const run = promisify(execFile)(biome, ["format", "--stdin-file-path=report.d.ts"], { cwd: root });
  run.child.stdin.end(text);
  const { stdout } = await run;
  // Removed comments leave empty lines.
  return stdout.replaceAll(/\n{2,}(?=[ }])/g, "\n");
}

import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const source = join(dirname(dirname(fileURLToPath(import.meta.url))), "src");
const at = (path) => join(source, path);

/**
 * Which modules share a file, given the chunks of a bundle without groups. Each file that Node loads costs as much as thousands of
 * lines in it, and what is shared in many combinations makes many files. So what a sandbox on this machine needs is one file,
 * what the command line needs without a sandbox is another, and what both need a third.
 */
export function startGroups(chunks) {
  const byFile = new Map(chunks.map((chunk) => [chunk.fileName, chunk]));
  const byModule = new Map(chunks.flatMap((chunk) => chunk.moduleIds.map((id) => [id, chunk])));
  const reach = (start, seen = new Set()) => {
    for (const chunk of start) {
      if (chunk === undefined || seen.has(chunk)) continue;
      seen.add(chunk);
      reach(
        chunk.imports.map((file) => byFile.get(file)),
        seen,
      );
    }
    return seen;
  };
  const modulesOf = (start) => new Set([...reach(start)].flatMap(({ moduleIds }) => moduleIds));
  const opening = modulesOf([byModule.get(at("sandbox/open.ts"))]);
  const local = modulesOf([byModule.get(at("sandbox/backends/local.ts"))]);
  const command = modulesOf([byModule.get(at("cli.ts"))]);
  const small = modulesOf(
    ["cli.ts", "cli/verbs/help.ts", "cli/verbs/version.ts"].map((path) => byModule.get(at(path))),
  );
  const exec = modulesOf([byModule.get(at("cli/verbs/exec.ts"))]);
  const batch = modulesOf([byModule.get(at("batch/run-batch.ts"))]);
  const groups = {
    base: (id) => (opening.has(id) || local.has(id)) && small.has(id),
    opening: (id) => opening.has(id),
    "on-this-machine": (id) => local.has(id),
    // A program that imports the library must not load the command line for what both need.
    shared: (id) => batch.has(id) && (command.has(id) || exec.has(id)),
    command: (id) => command.has(id) && id !== at("cli.ts"),
    running: (id) => exec.has(id) && !small.has(id),
  };
  return Object.entries(groups).map(([name, test], index) => ({ name, test, priority: 9 - index }));
}

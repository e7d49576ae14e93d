import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { COMMANDS } from "../../src/cli/commands/all.js";
import { loadVerb } from "../../src/cli/verbs.js";
import { findImports } from "../architecture/imports.js";
import { program } from "../support/cli.js";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** Every file of ours that is loaded with this one, before anything is asked for by `import()`. */
function loadedWith(file: string, seen = new Set<string>()): Set<string> {
  if (seen.has(file)) return seen;
  seen.add(file);
  for (const { specifier, kind } of findImports(readFileSync(join(root, file), "utf8"))) {
    if (kind !== "static" || specifier === undefined) continue;
    if (!specifier.startsWith(".")) expect(specifier).toMatch(/^node:/);
    else loadedWith(join(dirname(file), specifier).replace(/\.js$/, ".ts"), seen);
  }
  return seen;
}

/** Runs the built command line and gives what it printed, the address of every file that it loaded, and the sources in them. */
async function runAndSee(
  words: string[],
  env: NodeJS.ProcessEnv = process.env,
): Promise<{ stdout: string; loaded: string[]; sources: string[] }> {
  const source = `
    process.argv = [process.argv[0], ${JSON.stringify(program)}, ...${JSON.stringify(words)}];
    const { register, createRequire } = await import("node:module");
    const { pathToFileURL } = await import("node:url");
    const { MessageChannel, receiveMessageOnPort } = await import("node:worker_threads");
    const { port1, port2 } = new MessageChannel();
    process.on("exit", () => {
      const seen = [];
      for (let next; (next = receiveMessageOnPort(port1)); ) seen.push(next.message);
      const required = Object.keys(createRequire(process.argv[1]).cache).map((path) => pathToFileURL(path).href);
      console.error(JSON.stringify([...seen, ...required]));
    });
    const hooks = "let port; export const initialize = (data) => { port = data.port; };" +
      "export const load = (url, context, next) => { port.postMessage(url); return next(url, context); };";
    register("data:text/javascript," + encodeURIComponent(hooks), { data: { port: port2 }, transferList: [port2] });
    await import(${JSON.stringify(program)});
  `;
  const options = { env, maxBuffer: 10 * 1024 * 1024 };
  const { stderr, stdout } = await promisify(execFile)(
    process.execPath,
    ["--input-type=module", "-e", source],
    options,
  );
  const loaded = JSON.parse(stderr.trim().split("\n").at(-1) ?? "") as string[];
  const ours = loaded.filter((url) => url.startsWith("file:") && url.includes("/dist/"));
  return { stdout, loaded, sources: ours.flatMap((url) => sourcesIn(readFileSync(new URL(url), "utf8"))).sort() };
}

/** The sources that a built file was made of: a line before each names it. */
function sourcesIn(text: string): string[] {
  return [...text.matchAll(/^\/\/ ((?:src|contracts)\/.+\.ts)$/gm)].map(([, path = ""]) => path);
}

describe("the command line", () => {
  it("loads nothing of the sandbox but its errors before a verb asks for it", () => {
    const files = [...loadedWith("src/cli.ts")];
    expect(files).toContain("src/cli/commands/parse.ts");
    expect(files.filter((file) => /^(?:contracts|src\/(?:sandbox|testing|harness))/.test(file))).toEqual([
      "contracts/errors.ts",
    ]);
  });

  it.each([["--help"], ["version"], ["help exec"], ["exec --help"]])("loads no backend for %s", async (line) => {
    const { stdout, sources } = await runAndSee(line.split(" "));
    expect(stdout).toContain("glovebox");
    expect(sources).toContain("src/cli/main.ts");
    expect(sources.filter((path) => /^(?:contracts|src\/(?:sandbox|tasks|testing|harness))/.test(path))).toEqual([
      "contracts/errors.ts",
    ]);
  });

  it("loads few files for a command in a new sandbox, and nothing of what only other calls need", async () => {
    const place = mkdtempSync(join(tmpdir(), "glovebox-lazy-"));
    try {
      const env = { PATH: "/usr/bin:/bin", HOME: place, GLOVEBOX_HOME: join(place, "home"), TMPDIR: place };
      const { stdout, loaded, sources } = await runAndSee(["exec", "--", "echo", "ran"], env);
      expect(stdout).toBe("ran\n");
      expect(sources).toContain("src/sandbox/backends/local.ts");
      const others =
        /^src\/(?:sandbox\/(?:egress\/proxy|git\/(?:snapshot|push|jailed|fast-commit)\/)|tasks|harness|testing)/;
      expect(sources.filter((path) => others.test(path))).toEqual(["src/sandbox/git/snapshot/snapshot-details.ts"]);
      // Some Nodes take as long to load these for an import as everything of ours.
      expect(loaded.filter((url) => /^node:(?:http|https|zlib|dns\/promises|tls)$/.test(url))).toEqual([]);
      expect(loaded.filter((url) => url.includes("/dist/")).length).toBeLessThan(12);
    } finally {
      rmSync(place, { recursive: true, force: true });
    }
  });

  it("loads no package of a service for doctor where nothing could use it", async () => {
    const place = mkdtempSync(join(tmpdir(), "glovebox-lazy-"));
    try {
      const env = { PATH: "/usr/bin:/bin", HOME: place, GLOVEBOX_HOME: join(place, "home"), TMPDIR: place };
      const { stdout, loaded, sources } = await runAndSee(["doctor", "--json"], env);
      const { sections } = JSON.parse(stdout) as { sections: { name: string; findings: { status: string }[] }[] };
      const first = sections
        .filter(({ name }) => /daytona|vercel|dagger/.test(name))
        .map(({ findings }) => findings[0]);
      expect(first.map((finding) => finding?.status)).toEqual(["ok", "ok", "ok"]);
      expect(sources).toContain("src/sandbox/backends/dagger/probe.ts");
      expect(loaded.filter((url) => /node_modules\/@(?:daytona|vercel|dagger\.io)\//.test(url))).toEqual([]);
    } finally {
      rmSync(place, { recursive: true, force: true });
    }
  });

  it("has a module for every verb", async () => {
    for (const { name } of COMMANDS) expect(typeof (await loadVerb(name)).run).toBe("function");
  });
});

import { execFile } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";

const run = promisify(execFile);
const root = fileURLToPath(new URL("../..", import.meta.url));
const readme = readFileSync(join(root, "README.md"), "utf8");

describe("the readme", () => {
  it("stays short: what is long has a page of its own", () => {
    expect(readme.split("\n").length).toBeLessThanOrEqual(135);
    const [, benchmarks = ""] = readme.split(/<!-- bench: (?:begin|end) -->/);
    expect(benchmarks.match(/^\| [^-|]+\|/gm)?.length).toBeLessThanOrEqual(7);
  });

  it("shows a first program of at most ten lines of code", () => {
    const program = block("ts");
    expect(program.split("\n").filter((line) => line !== "").length).toBeLessThanOrEqual(10);
  });

  it("shows a program that runs, one command allowed and one refused", async () => {
    const { stdout } = await run(process.execPath, [built("hello.js")], { cwd: root });
    const [allowed, refused] = stdout.trim().split("\n");
    expect(allowed).toMatch(/^0 hello from \//);
    expect(refused).toMatch(/^1 cat: \/etc\/shadow: /);
  });

  it("shows a first program that runs as plain JavaScript on this Node, whatever its version", async () => {
    const place = mkdtempSync(join(tmpdir(), "glovebox-readme-"));
    try {
      mkdirSync(join(place, "node_modules"));
      symlinkSync(root, join(place, "node_modules", "glovebox"));
      writeFileSync(join(place, "first.mjs"), block("ts"));
      const { stdout } = await run(process.execPath, ["first.mjs"], { cwd: place });
      expect(stdout).toMatch(/^0 hello from \/.*\n1 cat: \/etc\/shadow: .*\n$/);
    } finally {
      rmSync(place, { recursive: true });
    }
  });

  it("shows a terminal that prints exactly this, one command allowed and one refused", async () => {
    const shown = block("console");
    const lines = [...shown.matchAll(/^\$ npx glovebox (.+)$/gm)].map(([, line]) => `glovebox ${line} 2>&1`);
    expect(lines).toHaveLength(2);
    const program = join(root, "dist", "src", "cli.js");
    const script = `glovebox() { "${process.execPath}" "${program}" "$@"; }\n${lines.join("\n")}\necho "ended with $?"`;
    const { stdout } = await run("sh", ["-c", script], { cwd: root });
    expect(stdout).toBe(`${shown.replace(/^\$ .*\n/gm, "")}ended with 1\n`);
  });

  it("shows further commands that work in a repository", async () => {
    const lines = [...readme.matchAll(/^npx glovebox (exec|run) .+$/gm)].map(([line]) => line.replace(/^npx /, ""));
    expect(lines).toHaveLength(3);
    const place = mkdtempSync(join(tmpdir(), "glovebox-readme-"));
    try {
      const program = join(root, "dist", "src", "cli.js");
      const script = [
        "set -e; git init -q -b main repo; cd repo; echo one > file; git add file",
        "git -c user.name=a -c user.email=a@example.org commit -qm one; echo two > file",
        `glovebox() { "${process.execPath}" "${program}" "$@"; }`,
        ...lines,
        "cat file",
      ].join("\n");
      const env = { ...process.env, GLOVEBOX_HOME: join(place, "home") };
      const { stdout, stderr } = await run("sh", ["-c", script], { cwd: place, env });
      expect(stdout).toMatch(/nothing to commit[\s\S]*^file$[\s\S]*^two$/m);
      expect(stderr).toMatch(/^SUCCESS in /m);
    } finally {
      rmSync(place, { recursive: true });
    }
  });

  it("names only commands and files that exist", () => {
    const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { scripts: object };
    const commands = [...readme.matchAll(/\bnpm (?:run )?(test|[a-z:]+(?=`|\s*$))/gm)].map((match) => match[1]);
    expect(commands).toEqual(expect.arrayContaining(["demo", "test"]));
    for (const command of commands) expect(Object.keys(scripts)).toContain(command);
    const links = [...readme.matchAll(/\]\((?!https?:|#)([^)]+)\)/g)].map((match) => match[1] ?? "");
    expect(links.filter((link) => !existsSync(join(root, link)))).toEqual([]);
  });
});

function block(language: string): string {
  const found = new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, "m").exec(readme)?.[1];
  if (found === undefined) throw new Error(`README.md has no block of ${language}`);
  return found;
}

function built(name: string): string {
  const path = join(root, "dist", "examples", name);
  if (!existsSync(path)) throw new Error("there is no dist/: type npm run build first");
  return path;
}

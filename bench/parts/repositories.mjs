import { spawn } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { start } from "./processes.mjs";

/** A repository of one commit with this many small files, 100 per directory. Made once per run. */
export async function repositoryOf(files, scratch) {
  const path = join(scratch, "repositories", String(files));
  if (existsSync(join(path, ".git", "HEAD"))) return path;
  mkdirSync(path, { recursive: true });
  await git(path, "init", "--quiet", "--initial-branch=main");
  await fastImport(path, importStream(files));
  await git(path, "config", "user.name", "Bench");
  await git(path, "config", "user.email", "bench@localhost");
  return path;
}

/** Runs git in a repository. */
export async function git(cwd, ...args) {
  const { stdout } = await start("git", args, { cwd, maxBuffer: 1 << 28 });
  return stdout;
}

/** The path of the n-th file in such a repository. */
export function fileAt(n) {
  const directory = Math.floor(n / 100);
  return `src/part-${Math.floor(directory / 20)}/module-${directory % 20}/file-${n % 100}.ts`;
}

function importStream(files) {
  const pieces = ["blob\nmark :1\ndata 0\n"];
  const entries = [];
  for (let n = 0; n < files; n++) {
    const text = `export const value${n} = ${n};\n${"// a line of a file that is as long as most are\n".repeat(8)}`;
    pieces.push(`blob\nmark :${n + 2}\ndata ${text.length}\n${text}\n`);
    entries.push(`M 100644 :${n + 2} ${fileAt(n)}\n`);
  }
  pieces.push(
    "commit refs/heads/main\ncommitter Bench <bench@localhost> 1700000000 +0000\ndata 5\nstart\n",
    ...entries,
  );
  return pieces.join("");
}

function fastImport(cwd, stream) {
  return new Promise((resolve, reject) => {
    const child = spawn("git", ["fast-import", "--quiet"], { cwd, stdio: ["pipe", "ignore", "inherit"] });
    child.once("error", reject);
    child.once("close", (code) => (code === 0 ? resolve() : reject(new Error(`git fast-import ended with ${code}`))));
    child.stdin.end(stream);
  });
}

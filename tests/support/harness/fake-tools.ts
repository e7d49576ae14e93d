import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** A folder for PATH with programs that print these lines, whatever they are asked. */
export function createFakeTools(folder: string, tools: Readonly<Record<string, readonly string[]>>): string {
  mkdirSync(folder, { recursive: true });
  for (const [name, lines] of Object.entries(tools)) {
    createFakeTool(folder, name, lines.map((line) => `echo '${line}'`).join("\n"));
  }
  return folder;
}

/** A program that is a script of the shell. Returns its path. */
export function createFakeTool(folder: string, name: string, script: string): string {
  const path = join(folder, name);
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o755);
  return path;
}

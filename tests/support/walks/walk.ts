import { execFile } from "node:child_process";
import type { FakeGitHub } from "../../fakes/github.js";
import type { Step, Walk } from "./steps.js";

/** How one command ended. */
export type End = readonly [start: string, code: string | undefined, printed: string | undefined];

/** A script that types commands in one shell, each list in a directory of the home, and prints after each command how it ended. */
export function scriptOf(lists: readonly (readonly [directory: string, Walk])[], github: FakeGitHub): string {
  const typed = lists.flatMap(([directory, { commands }]) => [
    `cd "$HOME/${directory}"\n`,
    ...commands.map((command) => `${standIn(command, github)}\nprintf '\\n@@ %s\\n' $?\n`),
  ]);
  return `exec 2>&1 </dev/null\n${typed.join("")}`;
}

/** Runs a program that runs such a script; gives how each command ended. */
export async function walk(
  [program, ...args]: readonly [string, ...string[]],
  opts: { signal: AbortSignal; cwd?: string; env?: Record<string, string>; uid?: number; gid?: number },
  steps: readonly Step[],
): Promise<End[]> {
  const output = await new Promise<string>((resolve) => {
    const child = execFile(
      program,
      args,
      { ...opts, maxBuffer: 1 << 24, killSignal: "SIGKILL" as const },
      (_, stdout, stderr) => resolve(stdout + stderr),
    );
    child.stdin?.end();
  });
  const ends = output.split(/\n@@ (\d+)\n/);
  return steps.map(([start], at) => [start, ends[2 * at + 1], ends[2 * at]]);
}

/** A command with stand-ins for the installers, for the repository on GitHub and for the token. */
function standIn(command: string, { url, env }: FakeGitHub): string {
  const replaced: readonly [string | RegExp, string][] = [
    [/^sudo apt-get .*$/m, "command -v bwrap && command -v git"],
    [/^npm install .*$/m, "true"],
    ["https://github.com/YOU/cart.git", url],
    ["github_pat_...", env.GITHUB_TOKEN],
  ];
  return replaced.reduce((text, [from, to]) => text.replace(from, () => to), command);
}

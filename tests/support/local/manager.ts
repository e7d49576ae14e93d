import { execFileSync, spawn } from "node:child_process";
import { chmodSync, chownSync, cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { SandboxOptions } from "../../../src/sandbox/types.js";
import { compileSources } from "../run/compiled.js";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const isRoot = process.getuid?.() === 0;

/** What a manager in a process of its own shall do: open one sandbox, put files into it, run scripts, take it away. */
export interface Job {
  options?: Omit<SandboxOptions, "signal" | "onEvent">;
  /** Programs of the host that are copied into the work directory, by name. */
  programs?: Record<string, string>;
  scripts?: readonly string[];
  /** Program of `tests/children` that does it. Default one that does what is said above. */
  child?: string;
  /** Variables of the manager. */
  env?: Record<string, string>;
  /** Directory that the manager runs in. Default its home. */
  cwd?: string;
  /** A command that starts the manager, whose own command follows it. */
  through?: readonly string[];
  /** Descriptors that the manager inherits at these numbers. */
  descriptors?: Record<number, number>;
}

/** What came of a job. */
export interface Answer {
  id: string;
  workDir: string;
  results: { exitCode: number; stdout: string; stderr: string }[];
}

/** Somebody who opens sandboxes in processes of their own, on the compiled sources. */
export interface Manager {
  readonly name: string;
  /** A private directory of this user's, with `tmp` and `state` in it. */
  readonly home: string;
  /** Makes something theirs. */
  own(path: string): void;
  run(job: Job): Promise<Answer>;
}

/** The compiled sources with the guest where every user can read them, and the managers to try: root, and an ordinary user. */
export interface Managers {
  /** Compiled sources, for programs of `tests/children`. */
  readonly directory: string;
  readonly all: Manager[];
  remove(): void;
}

/** Names of the managers that there will be, for `describe.each`. */
export const MANAGERS: readonly string[] = isRoot ? ["root", "an ordinary user"] : ["an ordinary user"];

export function createManagers(): Managers {
  const { directory, remove } = compileSources();
  chmodSync(directory, 0o755);
  cpSync(join(root, "guest", "bin"), join(directory, "guest", "bin"), { recursive: true });
  cpSync(join(root, "tests", "children"), join(directory, "children"), { recursive: true });
  const homes = mkdtempSync(join(realpathSync(tmpdir()), "glovebox-managers-"));
  chmodSync(homes, 0o755);
  const program = isRoot ? reachableNode(directory) : process.execPath;
  const all = MANAGERS.map((name) => createManager(name, homes, directory, program));
  return {
    directory,
    all,
    remove() {
      remove();
      rmSync(homes, { recursive: true, force: true });
    },
  };
}

function createManager(name: string, homes: string, directory: string, program: string): Manager {
  // Far from what distributions hand out; two runs at one time do not meet, nor does a suite that counts its user's processes.
  const id = name === "root" || !isRoot ? undefined : 61_000 + (process.pid % 2_000);
  const own = (path: string): void => {
    if (id !== undefined) chownSync(path, id, id);
  };
  const home = join(homes, name.replaceAll(" ", "-"));
  for (const path of [home, join(home, "tmp"), join(home, "state")]) {
    mkdirSync(path, { mode: 0o700 });
    own(path);
  }
  const run = async (job: Job): Promise<Answer> => {
    const { env, cwd = home, descriptors = {}, through = [], child: name = "manage.mjs", ...rest } = job;
    const highest = Math.max(2, ...Object.keys(descriptors).map(Number));
    const inherited = Array.from({ length: highest - 2 }, (_, index) => descriptors[index + 3] ?? "ignore");
    const command = [...through, program, join(directory, "children", name), directory, JSON.stringify(rest)];
    const child = spawn(command[0] as string, command.slice(1), {
      cwd,
      env: {
        PATH: `${dirname(program)}:/usr/local/bin:/usr/bin:/bin`,
        HOME: home,
        TMPDIR: join(home, "tmp"),
        GLOVEBOX_HOME: join(home, "state"),
        ...env,
      },
      stdio: ["ignore", "pipe", "inherit", ...inherited],
      ...(id !== undefined && { uid: id, gid: id }),
    });
    let output = "";
    child.stdout?.on("data", (chunk: Buffer) => {
      output += chunk;
    });
    const code = await new Promise((resolve) => child.on("close", resolve));
    if (code !== 0) throw new Error(`the manager ended with ${String(code)}: ${output}`);
    return JSON.parse(output) as Answer;
  };
  return { name, home, own, run };
}

/** The running Node, or a copy of it when it lies where only root may enter. */
function reachableNode(directory: string): string {
  let folder = dirname(process.execPath);
  while (folder !== "/" && (statSync(folder).mode & 0o001) !== 0) folder = dirname(folder);
  if (folder === "/") return process.execPath;
  const copy = join(directory, "bin", "node");
  cpSync(process.execPath, copy);
  return copy;
}

/** Compiles a program of `tests/support/probes` so that it runs in any sandbox. */
export function compileProbe(name: string, directory: string): string {
  const out = join(directory, name);
  const source = join(root, "tests", "support", "probes", `${name}.c`);
  execFileSync("cc", ["-static", "-O1", "-Wall", "-Wextra", "-Werror", "-o", out, source]);
  chmodSync(out, 0o755);
  return out;
}

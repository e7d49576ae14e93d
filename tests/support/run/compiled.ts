import { execFileSync, spawn } from "node:child_process";
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { madeForRun } from "./made-for-run.js";

const root = fileURLToPath(new URL("../../..", import.meta.url));

/** What programs of `tests/children` load. */
const LOADED = [
  ...[
    "sandbox/daytona",
    "sandbox/docker",
    "sandbox/dagger",
    "sandbox/kubernetes",
    "sandbox/local",
    "sandbox/reap",
    "sandbox/snapshots",
  ],
  ...["sandbox/git/snapshot/remove-snapshot", "sandbox/git/repository/repository", "sandbox/git/worktree/worktree"],
  ...[
    "ledger",
    "ledger/records",
    "ledger/snapshot-record",
    "machine/lock",
    "machine/remove-tree",
    "sandbox/egress/secrets/credentials",
  ],
];

/** The sources as plain JavaScript, for programs that run in processes of their own: a copy that is nobody else's, with the guests if wanted. */
export function compileSources({ withGuests = false }: { withGuests?: boolean } = {}): {
  directory: string;
  remove(): void;
} {
  const directory = mkdtempSync(join(tmpdir(), "glovebox-compiled-"));
  cpSync(compiledOnce(), directory, { recursive: true });
  const guests = join("guest", "bin");
  if (withGuests) cpSync(join(root, guests), join(directory, guests), { recursive: true });
  return { directory, remove: () => rmSync(directory, { recursive: true }) };
}

/** The sources as all tests of a run share them. */
export function compiledOnce(): string {
  return madeForRun("sources", (folder) => {
    writeFileSync(join(folder, "package.json"), '{"name":"glovebox","type":"module"}');
    const program = join(root, "scripts", "bundle.mjs");
    execFileSync(process.execPath, [program, "src", join(folder, "src"), ...LOADED], { cwd: root });
  });
}

/** A program of `tests/children` in its own process. */
export interface Child {
  readonly pid: number;
  /** Resolves with the next line that it prints; rejects when it ends first. */
  line(): Promise<string>;
  /** Resolves once it has ended, with all it printed. */
  ended: Promise<{ code: number | null; signal: string | null; output: string }>;
  /** Writes a line to its standard input. */
  tell(text: string): void;
  kill(): void;
}

/** Starts a program of `tests/children` on the compiled sources. */
export function startChild(
  directory: string,
  name: string,
  args: string[],
  env: Record<string, string> = {},
  cwd: string = process.cwd(),
): Child {
  const program = join(root, "tests", "children", name);
  const child = spawn(process.execPath, [program, directory, ...args], {
    env: { ...process.env, ...env },
    stdio: ["pipe", "pipe", "inherit"],
    cwd,
  });
  let output = "";
  let read = 0;
  let wake = (): void => undefined;
  child.stdout.on("data", (chunk: Buffer) => {
    output += chunk;
    wake();
  });
  let over = false;
  const ended = new Promise<{ code: number | null; signal: string | null; output: string }>((resolve) => {
    child.on("close", (code, signal) => {
      over = true;
      resolve({ code, signal, output });
      wake();
    });
  });
  const line = async (): Promise<string> => {
    for (;;) {
      const end = output.indexOf("\n", read);
      if (end >= 0) {
        const found = output.slice(read, end);
        read = end + 1;
        return found;
      }
      if (over) throw new Error(`${name} ended without another line`);
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  };
  const tell = (text: string): void => void child.stdin.write(`${text}\n`);
  return { pid: child.pid ?? 0, line, ended, tell, kill: () => child.kill("SIGKILL") };
}

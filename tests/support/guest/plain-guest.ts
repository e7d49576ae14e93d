import { randomInt } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { GuestFiles } from "../../../src/sandbox/guest/guest-files.js";
import { startCommand } from "../../../src/sandbox/guest/guest-process.js";
import { type RunningGuest, startPlainGuest } from "../../../src/sandbox/jail/start-guest.js";
import type { DriverExit, DriverProcess, StartSpec } from "../../../src/sandbox/types.js";
import { readQuietly } from "../processes/token-watch.js";

/** What a command left when it ended. */
export interface Ran extends DriverExit {
  stdout: string;
  stderr: string;
}

/** A guest without a jail, its root, and a place beside the root. */
export interface PlainGuest {
  readonly guest: RunningGuest;
  readonly pid: number;
  readonly root: string;
  readonly beside: string;
  readonly files: GuestFiles;
  start(argv: readonly string[], more?: Partial<StartSpec>): Promise<DriverProcess>;
  run(argv: readonly string[], more?: Partial<StartSpec>): Promise<Ran>;
  shell(script: string, more?: Partial<StartSpec>): Promise<Ran>;
  stop(): Promise<void>;
}

/** Starts a guest as an ordinary process on a directory of its own. */
export async function openPlainGuest(): Promise<PlainGuest> {
  const beside = realpathSync(mkdtempSync(join(tmpdir(), "glovebox-guest-test-")));
  const root = join(beside, "root");
  mkdirSync(root);
  const guest = await startPlainGuest(root, []);
  const start = (argv: readonly string[], more: Partial<StartSpec> = {}): Promise<DriverProcess> =>
    startCommand(guest.channel, { argv, cwd: root, env: { PATH: "/usr/bin:/bin" }, stdin: "none", ...more }, "");
  const run = async (argv: readonly string[], more?: Partial<StartSpec>): Promise<Ran> => {
    const process = await start(argv, more);
    const [stdout, stderr, exit] = await Promise.all([text(process.stdout), text(process.stderr), process.wait()]);
    return { ...exit, stdout, stderr };
  };
  const shell = (script: string, more?: Partial<StartSpec>): Promise<Ran> => run(["sh", "-c", script], more);
  const { stdout } = await shell("cut -d ' ' -f 4 /proc/$PPID/stat");
  const files = new GuestFiles(guest.channel, (path) => path);
  const stop = async (): Promise<void> => {
    await guest.stop();
    rmSync(beside, { recursive: true, force: true });
  };
  return { guest, pid: Number(stdout), root, beside, files, start, run, shell, stop };
}

/** All of a stream as text. */
export async function text(stream: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}

/** Processes that have this word among their arguments. */
export function processesWith(word: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => readQuietly(`/proc/${name}/cmdline`).split("\0").includes(word))
    .map(Number);
}

/** Waits until it holds, for half a minute at most. */
export async function until(holds: () => boolean): Promise<void> {
  for (let tries = 0; !holds(); tries++) {
    if (tries > 3000) throw new Error(`still not so after half a minute: ${holds}`);
    await new Promise((resolve) => {
      setTimeout(resolve, 10);
    });
  }
}

/** No other run has it, whatever its process ids are. */
const RUN = randomInt(1e9, 1e10);
let words = 0;
/** A number of seconds that no other sleep on this machine has: finds its process again. */
export function uniqueSeconds(): string {
  words += 1;
  return `9${RUN}.${words}`;
}

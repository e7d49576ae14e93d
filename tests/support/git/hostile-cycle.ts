import { createHash, randomBytes } from "node:crypto";
import { existsSync, lstatSync, readdirSync, readlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Changes, SandboxEvent } from "../../../contracts/types.js";
import { createLocalSandbox } from "../../../src/sandbox/backends/local.js";
import type { Sandbox, SandboxOptions } from "../../../src/sandbox/types.js";
import { listSnapshots } from "../../../src/sandbox.js";
import { filesBelow, lookForToken, processesNow, readQuietly as read } from "../processes/token-watch.js";
import { madeOnce } from "../run/made-once.js";
import { addOrigin, createRemote, createRepository, createScratch, git, gitEach, type Scratch } from "../scratch.js";
import { type GitServer, serveEvil, serveGit } from "./server.js";

/** What somebody inside may try, and what they may aim at. */
export interface Stage {
  readonly scratch: Scratch;
  readonly repo: string;
  readonly remote: string;
  readonly server: GitServer;
  readonly evil: GitServer;
  /** A program for a shell that leaves a trace when it runs on the host, and passes its input on. */
  readonly payload: string;
  /** The same, with a trace that says whose it is. */
  payloadOf(vector: string): string;
  /** A directory of the host's with one file, and a repository with a secret. */
  readonly victim: string;
  readonly token: string;
  /** Where the token was seen while it was used. */
  readonly shown: ReadonlySet<string>;
  /** Processes that were there before it. */
  readonly innocent: ReadonlySet<string>;
  close(): Promise<void>;
}

/** How each step went after something was planted: its answer or the code of its error. */
export interface Round {
  planted: string;
  changes: Changes | string;
  snapshot: string;
  restore: string;
  fork: string;
  push: { pushed: boolean; error?: string } | string;
  warnings: string[];
}

/** How a sandbox's life went. */
export interface Life extends Round {
  /** How it went with what was planted before, by name. */
  each: Readonly<Record<string, Round>>;
  /** Everything that must not have happened and did. */
  harm: string[];
}

/** Nobody else's: the machine's processes are searched for it, and other tests, and other runs of this one, go on beside it. */
const TOKEN = `ghp_hostilecycle${randomBytes(12).toString("hex")}`;

/** Sets up a repository, its remote, a server that must not be talked to and a victim. */
export async function setStage(): Promise<Stage> {
  const scratch = createScratch();
  const repo = createRepository(join(scratch.path, "repo"));
  const remote = createRemote(join(scratch.path, "remotes", "project.git"), repo, "main");
  const shown = new Set<string>();
  const innocent = processesNow();
  // While git talks to the remote, which is when it has the token.
  const server = await serveGit(join(scratch.path, "remotes"), TOKEN, () => {
    for (const place of lookForToken(TOKEN, [scratch.home], innocent)) shown.add(place);
    return false;
  });
  const evil = await serveEvil();
  addOrigin(repo, `${server.origin}/project.git`);
  const victim = madeOnce("victim of a stage", join(scratch.path, "victim"), (path) => {
    createRepository(path);
    writeFileSync(join(path, "a.txt"), "the secret of the victim\n");
    git(path, "commit", "--quiet", "-am", "secret");
  });
  return {
    scratch,
    repo,
    remote,
    server,
    evil,
    payload: `touch ${join(scratch.path, "canary")}; cat`,
    payloadOf: (vector) => `touch ${join(scratch.path, `canary-${vector}`)}; cat`,
    victim,
    token: TOKEN,
    shown,
    innocent,
    async close() {
      await server.close();
      await evil.close();
      scratch.remove();
    },
  };
}

/** How a sandbox lives. */
export interface LifeOptions {
  /** Without restore and fork, for a backend that has none. Default false. */
  brief?: boolean;
  workspace?: "worktree" | "overlay" | "copy";
  /** Planted one after the other, by their names, each with all steps before the next: those that would hide one another. */
  each?: Readonly<Record<string, string>>;
  /** Default: the local backend. */
  open?(opts: SandboxOptions): Promise<Sandbox>;
}

/** Takes one sandbox from its opening to its end, with something planted at the beginning. */
export async function liveThrough(stage: Stage, plant: string, opts: LifeOptions = {}): Promise<Life> {
  const { repo, token } = stage;
  const before = look(stage);
  const events: SandboxEvent[] = [];
  const { workspace = "worktree", open = createLocalSandbox } = opts;
  const sandbox = await open({ repo, branch: "work", workspace, onEvent: (event) => events.push(event) });
  const liveWith = async (script: string): Promise<Round> => {
    const first = events.length;
    const { exitCode, stderr } = await sandbox.shell(`printf 'work\\n' > work.txt\n${script}`);
    const changes = await codeOf(() => sandbox.changes());
    const snapshot = await codeOf(() => sandbox.snapshot());
    const [saved] = opts.brief === true ? [] : await listSnapshots();
    const restore = saved === undefined ? "no snapshot" : await codeOf(() => again(sandbox, saved.id));
    const fork = opts.brief === true ? "" : await codeOf(() => forkAndBack(sandbox));
    const push = await codeOf(async () => (await sandbox.pushBranch("work", token)) ?? "no pushBranch");
    const warnings = events.slice(first).flatMap(({ type, message }) => (type === "warning" ? [message] : []));
    return { planted: exitCode === 0 ? "" : stderr, changes, snapshot, restore, fork, push, warnings };
  };
  let life: Life;
  try {
    const each: [string, Round][] = [];
    for (const [name, script] of Object.entries(opts.each ?? {})) each.push([name, await liveWith(script)]);
    life = { ...(await liveWith(plant)), each: Object.fromEntries(each), harm: [] };
  } finally {
    await sandbox.teardown();
  }
  const shown = [...stage.shown, ...lookForToken(token, [stage.scratch.path], stage.innocent)];
  life.harm.push(...shown.map((place) => `the token is in ${place}`));
  if (JSON.stringify([life, events]).includes(token)) life.harm.push("the token is told");
  life.harm.push(...differences(before, look(stage)), ...traces(stage));
  life.harm.push(...(await leftOver(stage)));
  return life;
}

async function again(sandbox: Sandbox, id: string): Promise<string> {
  await sandbox.restore(id);
  return (await sandbox.readFile("work.txt")) ?? "no work.txt";
}

async function forkAndBack(sandbox: Sandbox): Promise<string> {
  const fork = await sandbox.fork();
  try {
    return (await fork.readFile("work.txt")) ?? "no work.txt";
  } finally {
    await fork.teardown();
  }
}

async function codeOf<T>(work: () => Promise<T>): Promise<T | string> {
  try {
    return await work();
  } catch (error) {
    return `refused: ${(error as { code?: string }).code ?? String(error)}`;
  }
}

type Look = Readonly<Record<string, string>>;

/** All that nobody but the user may change. */
function look({ repo, remote, victim }: Stage): Look {
  const refs = (path: string): string =>
    [join(path, "packed-refs"), ...filesBelow(join(path, "refs")).sort()]
      .filter((file) => !/\/refs\/(heads\/work$|glovebox\/)/.test(file))
      .map((file) => `${read(file)} ${file}`)
      .join("\n");
  return {
    "config of the repository": read(join(repo, ".git", "config")),
    "hooks of the repository": tree(join(repo, ".git", "hooks")),
    "info of the repository": tree(join(repo, ".git", "info")),
    "HEAD of the repository": read(join(repo, ".git", "HEAD")),
    "refs of the repository": refs(join(repo, ".git")),
    "files of the repository": git(repo, "status", "--porcelain", "--ignored"),
    "refs of the remote": refs(remote),
    "config and hooks of the remote": `${read(join(remote, "config"))}${tree(join(remote, "hooks"))}`,
    "the victim": tree(victim),
  };
}

function differences(before: Look, after: Look): string[] {
  return Object.keys(before).filter((name) => before[name] !== after[name]);
}

let secret: string | undefined;

function traces({ scratch, evil, repo, remote, victim }: Stage): string[] {
  const canaries = readdirSync(scratch.path).filter((name) => name.startsWith("canary"));
  const found = canaries.map((name) => `a payload ran on the host: ${name}`);
  if (evil.requests.length > 0) found.push(`requests at the evil server: ${JSON.stringify(evil.requests)}`);
  // Of every stage the same: they are made once.
  secret ??= git(victim, "rev-parse", "HEAD:a.txt");
  const places = [repo, remote];
  const said = gitEach(
    scratch.path,
    ...places.flatMap((path) => [
      ["-C", path, "fsck", "--strict", "--no-progress", "--no-dangling"],
      ["-C", path, "cat-file", "--batch-all-objects", "--batch-check"],
    ]),
  );
  for (const [n, path] of places.entries()) {
    const [check = "", objects = ""] = said.slice(2 * n);
    if (check !== "") found.push(`fsck of ${path}: ${check}`);
    // Nothing of the victim may have got into the repository, or out to the remote.
    if (objects.includes(secret)) found.push(`the victim's secret is in ${path}`);
  }
  return found;
}

/** What works for the sandbox, or on anything of the stage's, after its end; the server may still be at its last words. */
async function leftOver({ scratch }: Stage): Promise<string[]> {
  const look = (): string[] =>
    readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
      .map((pid) => ({ command: read(`/proc/${pid}/cmdline`), cwd: linkOf(`/proc/${pid}/cwd`) }))
      .filter(({ command, cwd }) => command !== "" && `${command}${cwd}`.includes(scratch.path))
      .map(({ command }) => `still running: ${command}`);
  let found = look();
  for (let attempt = 0; attempt < 300 && found.length > 0; attempt++) {
    await delay(100);
    found = look();
  }
  return found;
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}

function tree(root: string): string {
  const hash = createHash("sha256");
  const walk = (path: string): void => {
    if (!existsSync(path)) return;
    for (const entry of readdirSync(path, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const inner = join(path, entry.name);
      hash.update(`${entry.name}\0${lstatSync(inner).mode}\0${entry.isFile() ? read(inner) : ""}\0`);
      if (entry.isDirectory() && entry.name !== "objects") walk(inner);
    }
  };
  walk(root);
  return hash.digest("hex");
}

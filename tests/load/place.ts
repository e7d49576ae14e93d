import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { setEnv } from "../support/environment.js";
import { descendants } from "../support/processes/descendants.js";
import { processesWith } from "../support/processes/host-processes.js";
import { filesBelow } from "../support/processes/token-watch.js";
import { createRepository, createScratch, git } from "../support/scratch.js";

/** A repository, a home and a directory for temporary files of one suite. */
export interface LoadPlace {
  readonly path: string;
  readonly repo: string;
  /** What is there now was there before. */
  begin(): void;
  /** What there is beyond what there was at the start, once it does not become less any more: thirty seconds at most. */
  left(ids: readonly string[]): Promise<Record<string, unknown>>;
  remove(): void;
}

const FILES = 1_500;
const CONTROLLERS = ["", "memory", "cpu", "pids", "unified"];

/** Makes a place whose repository has so many files that git is busy with them for a while. */
export function createLoadPlace(): LoadPlace {
  const scratch = createScratch();
  const repo = createRepository(join(scratch.path, "repo"));
  for (let n = 0; n < FILES; n++) {
    const folder = join(repo, `part-${n % 30}`);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, `file-${n}.txt`), `${n}\n`.repeat(50));
  }
  git(repo, "add", "-A");
  git(repo, "commit", "--quiet", "-m", "many");
  const temporary = join(scratch.path, "tmp");
  mkdirSync(temporary);
  const restore = setEnv({ TMPDIR: temporary });
  let before = new Set<number>();
  const look = (ids: readonly string[]): Record<string, unknown> => ({
    processes: [
      ...processesWith(scratch.path).map(({ argv }) => argv.join(" ").slice(0, 300)),
      ...descendants(process.pid).filter((pid) => !before.has(pid)),
    ],
    mounts: readFileSync("/proc/self/mountinfo", "utf8")
      .split("\n")
      .filter((line) => line.includes(scratch.path)),
    groups: ids
      .flatMap((id) => CONTROLLERS.map((name) => join("/sys/fs/cgroup", name, "glovebox", id)))
      .filter((path) => existsSync(path)),
    temporary: readdirSync(temporary),
    records: existsSync(join(scratch.home, "sandboxes")) ? readdirSync(join(scratch.home, "sandboxes")) : [],
    locks: filesBelow(join(repo, ".git")).filter((path) => /\.lock$/.test(path)),
    worktrees: git(repo, "worktree", "list").split("\n").slice(1),
    branches: git(repo, "for-each-ref", "--format=%(refname)", "refs/heads")
      .split("\n")
      .filter((ref) => !["refs/heads/main", "refs/heads/other"].includes(ref)),
  });
  return {
    path: scratch.path,
    repo,
    begin() {
      before = new Set(descendants(process.pid));
    },
    async left(ids) {
      const some = (found: Record<string, unknown>): boolean =>
        Object.values(found).some((value) => Array.isArray(value) && value.length > 0);
      let found = look(ids);
      for (const end = performance.now() + 30_000; some(found) && performance.now() < end; found = look(ids)) {
        await delay(200);
      }
      return Object.fromEntries(Object.entries(found).filter(([, value]) => (value as unknown[]).length > 0));
    },
    remove() {
      restore();
      scratch.remove();
    },
  };
}

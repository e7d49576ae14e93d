import { realpathSync } from "node:fs";
import { resolve } from "node:path";
import type { Backend, SnapshotRecord } from "../../../contracts/backend.js";
import type { Driver } from "../../../contracts/driver.js";
import { SandboxError } from "../../../contracts/errors.js";
import type { SandboxOptions } from "../../../contracts/sandbox.js";
import { isPossibleWorkDir } from "./work-dir.js";

const OF_REPOSITORY = ["branch", "workspace", "gitFilters", "gitAlternates"] as const;

/** The options of a sandbox that starts with the files of a snapshot: its repository is that of the snapshot. */
export function startOptions(backend: Backend, opts: SandboxOptions, record: SnapshotRecord): SandboxOptions {
  const { id, repo } = record;
  if (record.backend !== backend.name) {
    throw conflict(`Snapshot "${id}" belongs to the backend ${record.backend}, not to ${backend.name}`, "omit backend");
  }
  if (opts.repo !== undefined && !isSameRepository(opts.repo, repo)) {
    throw conflict(`Snapshot "${id}" belongs to ${repo ?? "no repository"}, not to ${opts.repo}`, "omit repo");
  }
  if (backend.startsFromSnapshots === true && opts.image !== undefined) {
    throw new SandboxError("invalid_argument", `Option image ("${opts.image}") does not go together with snapshot`, {
      hint: "omit image: the snapshot contains the files of its own",
    });
  }
  for (const name of repo === undefined ? OF_REPOSITORY : []) {
    if (opts[name] === undefined) continue;
    throw new SandboxError("invalid_argument", `Option ${name} ("${opts[name]}") needs a repository`, {
      hint: `snapshot "${id}" has none; leave ${name} out`,
    });
  }
  return { ...(repo !== undefined && { repo }), ...placeOf(backend, opts, record), ...opts };
}

/** Like a fork, the sandbox works where that of the snapshot did: virtual environments and scripts contain absolute paths. */
function placeOf(backend: Backend, opts: SandboxOptions, { workDir }: SnapshotRecord): Pick<SandboxOptions, "workDir"> {
  if (workDir === undefined || backend.capabilities(opts).workDir !== true || !isPossibleWorkDir(workDir)) return {};
  return { workDir };
}

/** Puts the files of a snapshot into a sandbox that was just made. */
export async function fillFromSnapshot(driver: Driver, { id }: SnapshotRecord): Promise<void> {
  if (driver.restore === undefined) {
    throw new SandboxError("unsupported", `The ${driver.backend} backend can't restore snapshots`);
  }
  await driver.restore(id);
}

/** Whether an option means the repository of a record: the same URL, or a path to the same directory. */
function isSameRepository(given: string, recorded: string | undefined): boolean {
  if (recorded === undefined) return false;
  if (plain(given) === plain(recorded)) return true;
  try {
    return realpathSync(resolve(given)) === recorded;
  } catch {
    return false;
  }
}

/** `acme/widgets` is the same repository as `https://github.com/acme/widgets.git`. */
function plain(repo: string): string {
  const server = (process.env["GITHUB_SERVER_URL"] || "https://github.com").replace(/\/+$/, "");
  const text = repo.replace(/\/+$/, "").replace(/\.git$/, "");
  return /^[\w.-]+\/[\w.-]+$/.test(text) ? `${server}/${text}` : text;
}

function conflict(message: string, hint: string): SandboxError {
  return new SandboxError("conflict", message, { retryable: false, hint });
}

import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createReadStream, createWriteStream } from "node:fs";
import { cp, mkdir, rm } from "node:fs/promises";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { isAbsolute, join } from "node:path";
import { pipeline } from "node:stream/promises";
import {
  type Backend,
  type Capabilities,
  GuestChannel,
  GuestDriver,
  guestBinary,
  readSnapshotRecord,
  replaceFiles,
  type SandboxEntry,
  SandboxError,
  type SandboxOptions,
  snapshotIds,
  writeSnapshotRecord,
} from "glovebox/backend";

// #region options
declare global {
  interface GloveboxBackendOptions {
    folder?: FolderOptions;
  }
}

/** What only this backend knows. */
export interface FolderOptions {
  /** Where the folders are made. Default: in the temporary directory. */
  parent?: string;
}

/** Any schema library fits here: all that is asked for is a method `parse`. */
function parse(value: unknown): FolderOptions {
  const { parent = DEFAULT_PARENT, ...unknown } = value as FolderOptions;
  if (typeof parent === "string" && isAbsolute(parent) && Object.keys(unknown).length === 0) return { parent };
  throw new SandboxError("invalid_argument", "folder takes parent, an absolute path");
}
// #endregion options

const BACKEND = "folder";
export const DEFAULT_PARENT: string = join(tmpdir(), `glovebox-folders-${process.getuid?.() ?? "all"}`);

// #region capabilities
const NOTHING_CONFINES = "nothing confines its commands";

/** What this backend really enforces. Everything else is refused before anything is made. */
const CAPABILITIES: Capabilities = {
  isolation: "none",
  killTree: "best-effort",
  network: ["full"],
  limits: [],
  snapshot: "crash-consistent",
  fork: "copy",
  pty: true,
  user: false,
  combinedOutput: true,
  ports: true,
  git: false,
  // $HOME is in the folder, and /tmp is that of the machine.
  keep: "all",
  reasons: {
    ...Object.fromEntries(["memory", "cpus", "pids", "disk"].map((name) => [`limits.${name}`, NOTHING_CONFINES])),
    "network.none": NOTHING_CONFINES,
    "network.allow": NOTHING_CONFINES,
    liveNetwork: NOTHING_CONFINES,
    secrets: NOTHING_CONFINES,
    networkRules: NOTHING_CONFINES,
    workDir: "a command sees the paths of the machine",
    paths: "a command reaches every path of the machine, and file calls must not",
    user: "every command runs as you",
    git: "it takes no repository",
  },
};
const NOT_HERE = ["repo", "baseDir", "image", "mounts"] as const;
// #endregion capabilities

// #region backend
/** Sandboxes that are folders of this machine. Nothing isolates them, and the backend says so. */
export const backend: Backend = {
  name: BACKEND,
  capabilities: () => CAPABILITIES,
  options: { parse },
  check(opts) {
    for (const name of NOT_HERE) {
      if (opts[name] !== undefined) throw new SandboxError("unsupported", `The ${BACKEND} backend has no ${name}`);
    }
  },
  create: (opts, entry) => create(opts, entry),
  async reopen(plan, _, entry) {
    return await start((plan as Plan).folder, entry);
  },
  async removeResource({ kind, path, snapshot }) {
    // An archive belongs to its snapshot as soon as that is known, and to nobody before.
    if (kind === "archive" && (await snapshotIds()).includes(String(snapshot))) return;
    await rm(String(path), { recursive: true, force: true });
  },
  async removeSnapshot({ archive }) {
    if (archive !== undefined) await rm(archive, { force: true });
  },
};

/** What a kept sandbox is opened again from. */
interface Plan {
  readonly folder: string;
}

async function create({ folder: own }: SandboxOptions, entry: SandboxEntry, origin?: string): Promise<FolderDriver> {
  const folder = join(own?.parent ?? DEFAULT_PARENT, entry.id);
  // In the ledger before it exists: whenever this process dies, the next one finds it and removes it.
  await entry.createRecord({ workDir: join(folder, "work"), resources: [{ kind: "folder", path: folder }] });
  if (origin !== undefined) await cp(origin, folder, { recursive: true, verbatimSymlinks: true });
  for (const name of ["work", "home"]) await mkdir(join(folder, name), { recursive: true });
  await entry.savePlan({ folder } satisfies Plan);
  return await start(folder, entry);
}
// #endregion backend

// #region channel
/** Starts the guest, which does everything else. Any stream of bytes to it would do: a socket here, an SSH session elsewhere. */
async function start(folder: string, entry: SandboxEntry): Promise<FolderDriver> {
  const child = spawn(guestBinary(), ["serve", join(folder, "work")], {
    stdio: ["ignore", "ignore", "ignore", "pipe"],
    env: { PATH: "/usr/bin:/bin" },
  });
  const gone = once(child, "exit");
  const channel = new GuestChannel(child.stdio[3] as Socket);
  await channel.hello;
  child.unref();
  channel.unref();
  const close = async (): Promise<void> => {
    // The channel is the lease: without it the guest ends everything that runs, and itself.
    channel.close();
    await gone;
  };
  return new FolderDriver(folder, entry, channel, close);
}
// #endregion channel

// #region driver
class FolderDriver extends GuestDriver {
  readonly backend = BACKEND;
  readonly hostDir: string;
  readonly close: () => Promise<void>;
  readonly #folder: string;
  readonly #entry: SandboxEntry;

  constructor(folder: string, entry: SandboxEntry, channel: GuestChannel, close: () => Promise<void>) {
    const baseEnv = { PATH: process.env["PATH"] ?? "/usr/bin:/bin", HOME: join(folder, "home"), LANG: "C.UTF-8" };
    super({ id: entry.id, workDir: join(folder, "work"), capabilities: CAPABILITIES, baseEnv }, channel);
    this.hostDir = this.workDir;
    this.close = close;
    this.#folder = folder;
    this.#entry = entry;
  }

  async snapshot(): Promise<string> {
    const id = `${BACKEND}-${randomUUID()}`;
    const path = `${this.#folder}-${id}.tar`;
    const resource = { kind: "archive", path, snapshot: id };
    await this.#entry.record(resource);
    await pipeline(this.exportTree(this.workDir), createWriteStream(path, { mode: 0o600, flush: true }));
    const createdAt = new Date().toISOString();
    await writeSnapshotRecord({ version: 1, id, sandboxId: this.id, backend: BACKEND, createdAt, archive: path });
    await this.#entry.forget((each) => each["snapshot"] === id);
    return id;
  }

  async restore(id: string): Promise<void> {
    const { archive, backend: maker } = await readSnapshotRecord(id);
    if (maker !== BACKEND || archive === undefined) {
      throw new SandboxError("invalid_argument", `The snapshot "${id}" is not of the ${BACKEND} backend`);
    }
    await replaceFiles({ driver: this }, [createReadStream(archive)], { keepGit: false });
  }

  fork(count: number): Promise<FolderDriver[]> {
    const parent = join(this.#folder, "..");
    const copy = (entry: SandboxEntry): Promise<FolderDriver> => create({ folder: { parent } }, entry, this.#folder);
    return this.#entry.fork(count, copy);
  }
}
// #endregion driver

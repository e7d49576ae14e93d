import { randomBytes } from "node:crypto";
import type { Json } from "./checks.js";
import { copyFiles, FakeMachine, type MachineCommand, removeFiles } from "./machine.js";
import { Refusal } from "./refusal.js";

const DAY = 86_400_000;
const DEFAULT_EXPIRATION = 30 * DAY;
const DEFAULT_TIMEOUT = 300_000;

export interface StoredCommand {
  readonly id: string;
  readonly order: Json & { readonly command: string; readonly args: readonly string[] };
  readonly run: MachineCommand;
  readonly lines: { stream: "stdout" | "stderr"; data: string }[];
  readonly startedAt: number;
  exitCode: number | null;
  readonly ended: Promise<void>;
  readonly watchers: Set<() => void>;
}

/** One run of a machine. Its settings are its own: a change of them is forgotten when it stops. */
export interface StoredSession {
  readonly id: string;
  readonly sandbox: string;
  /** Not every image has the same layout. */
  readonly cwd: string;
  readonly sourceSnapshotId?: string;
  readonly files: string;
  machine: FakeMachine | undefined;
  readonly commands: Map<string, StoredCommand>;
  status: "running" | "stopping" | "stopped" | "snapshotting";
  policy: Json;
  timeout: number;
  readonly createdAt: number;
  timer?: NodeJS.Timeout;
  routes: { url: string; subdomain: string; port: number }[];
}

/** What a session starts from, by name. */
export interface StoredSandbox {
  readonly name: string;
  readonly params: Json;
  persistent: boolean;
  policy: Json;
  timeout: number;
  ports: readonly number[];
  expiration: number | undefined;
  keepLast: { count: number; expiration?: number; deleteEvicted?: boolean } | undefined;
  sourceSnapshotId: string | undefined;
  currentSnapshotId?: string;
  session: StoredSession;
  /** Settles when its newest session runs. */
  booting: Promise<void>;
}

export interface StoredSnapshot {
  readonly id: string;
  readonly sandbox: string;
  readonly sessionId: string;
  readonly files: string;
  readonly createdAt: number;
  /** Whether somebody asked for it, or the service took it when a session stopped. */
  readonly method: "manual" | "automatic";
  /** Absent: never. */
  expiresAt: number | undefined;
  status: "created" | "deleted";
}

/** Sandboxes, their sessions and their snapshots, as the service has them. */
export class VercelStore {
  /** The most that the plan allows for one session, extensions included. */
  maxTimeout: number = DAY;
  /** How long a machine takes to stop; until then it is neither running nor stopped. */
  stopDelay = 0;
  readonly #sandboxes = new Map<string, StoredSandbox>();
  readonly #sessions = new Map<string, StoredSession>();
  readonly #snapshots = new Map<string, StoredSnapshot>();

  sandboxes(): StoredSandbox[] {
    return [...this.#sandboxes.values()];
  }

  snapshots(): StoredSnapshot[] {
    return [...this.#snapshots.values()].filter(({ status }) => status === "created");
  }

  sandbox(name: string): StoredSandbox {
    const found = this.#sandboxes.get(name);
    if (found === undefined) throw new Refusal(404, "not_found", `There is no sandbox ${name}`);
    return found;
  }

  /** As `sandbox`, once its session runs. */
  async booted(name: string): Promise<StoredSandbox> {
    const found = this.sandbox(name);
    await found.booting;
    return found;
  }

  session(id: string): StoredSession {
    const found = this.#sessions.get(id);
    if (found === undefined) throw new Refusal(404, "not_found", "There is no such session");
    return found;
  }

  /** A deleted snapshot is still known, as deleted. */
  snapshot(id: string): StoredSnapshot {
    const found = this.#snapshots.get(id);
    if (found === undefined) throw new Refusal(404, "not_found", "There is no such snapshot");
    return found;
  }

  async create(body: Json): Promise<StoredSandbox> {
    const name = (body["name"] as string | undefined) ?? `sandbox-${newId()}`;
    if (this.#sandboxes.has(name)) {
      throw new Refusal(400, "bad_request", `A sandbox with the name ${name} already exists`);
    }
    const timeout = (body["timeout"] as number | undefined) ?? DEFAULT_TIMEOUT;
    this.#assertTimeout(timeout);
    const source = body["source"] as { type?: string; snapshotId?: string } | undefined;
    const sourceSnapshotId = source?.type === "snapshot" ? source.snapshotId : undefined;
    if (sourceSnapshotId !== undefined) this.#saved(sourceSnapshotId);
    const described: Omit<StoredSandbox, "session"> = {
      name,
      params: body,
      persistent: body["persistent"] !== false,
      policy: (body["networkPolicy"] as Json | undefined) ?? { mode: "allow-all" },
      timeout,
      ports: (body["ports"] as number[] | undefined) ?? [],
      expiration: body["snapshotExpiration"] as number | undefined,
      keepLast: body["keepLastSnapshots"] as StoredSandbox["keepLast"],
      sourceSnapshotId,
      booting: Promise.resolve(),
    };
    const sandbox = described as StoredSandbox;
    // The name is taken from here on, also for the same request that comes once more.
    this.#sandboxes.set(name, sandbox);
    sandbox.booting = this.#boot(sandbox, sourceSnapshotId);
    await sandbox.booting;
    return sandbox;
  }

  /** A persistent sandbox goes on from its current snapshot, any other starts with nothing. */
  async resume(sandbox: StoredSandbox): Promise<boolean> {
    const { status } = sandbox.session;
    if (status === "running") return false;
    if (status !== "stopped") throw new Refusal(422, `sandbox_${status}`, `The sandbox is ${status}`);
    const booting = this.#boot(sandbox, sandbox.persistent ? sandbox.currentSnapshotId : sandbox.sourceSnapshotId);
    sandbox.booting = booting.catch(() => undefined);
    await booting;
    return true;
  }

  /** What is changed here is there in the next session; of this one, only its ports change. */
  async update(sandbox: StoredSandbox, body: Json): Promise<void> {
    if (body["timeout"] !== undefined) this.#assertTimeout(Number(body["timeout"]));
    if (body["currentSnapshotId"] !== undefined) {
      sandbox.currentSnapshotId = this.#saved(String(body["currentSnapshotId"])).id;
    }
    sandbox.persistent = (body["persistent"] as boolean | undefined) ?? sandbox.persistent;
    sandbox.policy = (body["networkPolicy"] as Json | undefined) ?? sandbox.policy;
    sandbox.timeout = (body["timeout"] as number | undefined) ?? sandbox.timeout;
    sandbox.expiration = (body["snapshotExpiration"] as number | undefined) ?? sandbox.expiration;
    const keepLast = body["keepLastSnapshots"] as StoredSandbox["keepLast"] | null;
    if (keepLast !== undefined) sandbox.keepLast = keepLast ?? undefined;
    if (body["ports"] === undefined) return;
    sandbox.ports = body["ports"] as number[];
    await route(sandbox.session, sandbox.ports);
  }

  /** Ends a session. The service saves the files of a persistent sandbox by itself, with what it has of settings now. */
  async stop(session: StoredSession): Promise<StoredSnapshot | undefined> {
    if (session.machine === undefined) return undefined;
    // Who deletes the sandbox meanwhile does not change that its files are saved.
    const sandbox = this.#sandboxes.get(session.sandbox);
    await this.#halt(session, "stopping");
    const snapshot = sandbox?.persistent === true ? this.#save(sandbox, session, "automatic") : undefined;
    session.status = "stopped";
    return snapshot;
  }

  /** Ends a session for a snapshot that was asked for, from which the sandbox goes on. */
  async saveSession(session: StoredSession, expiration: number | undefined): Promise<StoredSnapshot> {
    const sandbox = this.sandbox(session.sandbox);
    await this.#halt(session, "snapshotting");
    const snapshot = this.#save(sandbox, session, "manual", expiration);
    session.status = "stopped";
    return snapshot;
  }

  extend(session: StoredSession, duration: number): void {
    this.#assertTimeout(session.timeout + duration);
    session.timeout += duration;
    this.#expire(session);
  }

  /** Snapshots stay, unless it is said that those go that no other sandbox uses. */
  async remove(sandbox: StoredSandbox, withSnapshots: boolean): Promise<void> {
    await this.stop(sandbox.session);
    this.#sandboxes.delete(sandbox.name);
    removeFiles(sandbox.session.files);
    if (!withSnapshots) return;
    const used = new Set(this.sandboxes().flatMap((each) => [each.currentSnapshotId, each.sourceSnapshotId]));
    for (const snapshot of this.snapshots()) {
      if (snapshot.sandbox === sandbox.name && !used.has(snapshot.id)) this.removeSnapshot(snapshot);
    }
  }

  removeSnapshot(snapshot: StoredSnapshot): void {
    if (snapshot.status === "deleted") return;
    snapshot.status = "deleted";
    removeFiles(snapshot.files);
  }

  async close(): Promise<void> {
    for (const sandbox of this.sandboxes()) {
      await sandbox.booting;
      sandbox.persistent = false;
      await this.remove(sandbox, false);
    }
    for (const snapshot of this.snapshots()) this.removeSnapshot(snapshot);
  }

  async #boot(sandbox: StoredSandbox, from: string | undefined): Promise<void> {
    const saved = from === undefined ? undefined : this.#saved(from);
    const files = saved === undefined ? FakeMachine.makeFiles() : copyFiles(saved.files);
    const before = sandbox.session as StoredSession | undefined;
    if (before !== undefined) removeFiles(before.files);
    const { policy, timeout } = sandbox;
    const session: StoredSession = {
      id: `sbx_${newId()}`,
      sandbox: sandbox.name,
      cwd: String(sandbox.params["image"]).startsWith("vercel/") ? "/vercel" : "/vercel/sandbox",
      ...(from !== undefined && { sourceSnapshotId: from }),
      files,
      machine: await FakeMachine.start(files, policy["mode"] !== "allow-all"),
      commands: new Map(),
      status: "running",
      policy,
      timeout,
      createdAt: Date.now(),
      routes: [],
    };
    sandbox.session = session;
    this.#sessions.set(session.id, session);
    this.#expire(session);
    await route(session, sandbox.ports);
  }

  async #halt(session: StoredSession, status: "stopping" | "snapshotting"): Promise<void> {
    clearTimeout(session.timer);
    session.status = status;
    const { machine } = session;
    session.machine = undefined;
    for (const command of session.commands.values()) for (const notify of command.watchers) notify();
    await machine?.stop();
    if (this.stopDelay > 0) await new Promise((resolve) => setTimeout(resolve, this.stopDelay));
  }

  #save(
    sandbox: StoredSandbox,
    session: StoredSession,
    method: StoredSnapshot["method"],
    asked?: number,
  ): StoredSnapshot {
    const createdAt = Date.now();
    const expiration = asked ?? sandbox.keepLast?.expiration ?? sandbox.expiration ?? DEFAULT_EXPIRATION;
    const snapshot: StoredSnapshot = {
      id: `snap_${newId()}`,
      sandbox: sandbox.name,
      sessionId: session.id,
      files: copyFiles(session.files),
      createdAt,
      method,
      expiresAt: expiration === 0 ? undefined : createdAt + expiration,
      status: "created",
    };
    this.#snapshots.set(snapshot.id, snapshot);
    sandbox.currentSnapshotId = snapshot.id;
    this.#evict(sandbox);
    return snapshot;
  }

  /** Retention makes no difference between snapshots that were asked for and others. */
  #evict({ name, keepLast, expiration = DEFAULT_EXPIRATION }: StoredSandbox): void {
    if (keepLast === undefined) return;
    const own = this.snapshots().filter(({ sandbox }) => sandbox === name);
    for (const snapshot of own.slice(0, -keepLast.count)) {
      if (keepLast.deleteEvicted !== false) this.removeSnapshot(snapshot);
      else snapshot.expiresAt = expiration === 0 ? undefined : snapshot.createdAt + expiration;
    }
  }

  #expire(session: StoredSession): void {
    clearTimeout(session.timer);
    const left = session.createdAt + session.timeout - Date.now();
    session.timer = setTimeout(() => void this.stop(session), Math.max(0, left)).unref();
  }

  #assertTimeout(timeout: number): void {
    if (timeout > 0 && timeout <= this.maxTimeout) return;
    throw new Refusal(400, "sandbox_timeout_invalid", `The timeout is not within ${this.maxTimeout} ms`);
  }

  #saved(id: string): StoredSnapshot {
    const found = this.#snapshots.get(id);
    if (found?.status === "created") return found;
    throw new Refusal(410, "snapshot_not_found", `Snapshot not found: ${id}`);
  }
}

async function route(session: StoredSession, ports: readonly number[]): Promise<void> {
  const kept = session.routes.filter(({ port }) => ports.includes(port));
  for (const port of ports) {
    if (kept.some((each) => each.port === port) || session.machine === undefined) continue;
    kept.push({ port, subdomain: `sb-${newId()}`, url: await session.machine.gate(port) });
  }
  session.routes = kept;
}

/** The random part of an id. */
export function newId(): string {
  return randomBytes(8).toString("hex");
}

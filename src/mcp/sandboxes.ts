import { SandboxError } from "../../contracts/errors.js";
import type { Sandbox } from "../sandbox/types.js";
import type { OpenOptions } from "../sandbox.js";

/** A sandbox of a client, or one that is being opened. */
interface Entry {
  readonly opening: Promise<Sandbox>;
  sandbox?: Sandbox;
}

/** The sandboxes of all clients. Each belongs to its client, and no other can name it. */
export class OwnedSandboxes {
  readonly #open: (options: Partial<OpenOptions>, signal: AbortSignal) => Promise<Sandbox>;
  readonly #most: number;
  readonly #byOwner = new Map<string, Set<Entry>>();
  readonly #closing = new AbortController();

  constructor(open: (options: Partial<OpenOptions>, signal: AbortSignal) => Promise<Sandbox>, most: number) {
    this.#open = open;
    this.#most = most;
  }

  /** The one sandbox of a client that has only one: made when it is first asked for, and again if it was lost. */
  async only(owner: string): Promise<Sandbox> {
    const [entry] = this.#of(owner);
    return await (entry ?? this.#start(owner, {})).opening;
  }

  /** The sandbox of that id, if it is the client's. */
  byId(owner: string, id: string): Sandbox {
    const found = [...this.#of(owner)].find(({ sandbox }) => sandbox?.id === id)?.sandbox;
    if (found !== undefined) return found;
    throw new SandboxError("not_found", `There is no sandbox "${id}"`, {
      hint: "sandbox_list shows yours; one that was idle for long, or was lost, is closed: sandbox_create makes another",
    });
  }

  /** Opens one more. */
  async create(owner: string, options: Partial<OpenOptions>): Promise<Sandbox> {
    return await this.#start(owner, options).opening;
  }

  /** Adds one that is open already, such as a fork. */
  adopt(owner: string, sandbox: Sandbox): void {
    this.#of(owner).add({ opening: Promise.resolve(sandbox), sandbox });
  }

  /** Refuses what would be too many. */
  assertRoom(owner: string): void {
    if (this.#of(owner).size < this.#most) return;
    throw new SandboxError("limit_exceeded", `You have ${this.#most} sandboxes, which is the most`, {
      hint: "sandbox_destroy removes one that you don't need any more",
    });
  }

  /** The open sandboxes of a client. */
  list(owner: string): Sandbox[] {
    return [...this.#of(owner)].flatMap(({ sandbox }) => (sandbox === undefined ? [] : [sandbox]));
  }

  /** Closes one. */
  async destroy(owner: string, id: string): Promise<void> {
    const sandbox = this.byId(owner, id);
    this.forget(sandbox);
    await sandbox.teardown();
  }

  /** Takes a sandbox that is closed or lost off the list. */
  forget(sandbox: Sandbox): void {
    for (const [owner, entries] of this.#byOwner) {
      for (const entry of entries) if (entry.sandbox === sandbox) entries.delete(entry);
      if (entries.size === 0) this.#byOwner.delete(owner);
    }
  }

  /** Closes those of one client, also those that are being opened. */
  async closeOf(owner: string): Promise<void> {
    const entries = [...(this.#byOwner.get(owner) ?? [])];
    this.#byOwner.delete(owner);
    await Promise.all(entries.map(async ({ opening }) => (await opening.catch(() => undefined))?.teardown()));
  }

  /** Closes all. Opens no more. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all([...this.#byOwner.keys()].map((owner) => this.closeOf(owner)));
  }

  #start(owner: string, options: Partial<OpenOptions>): Entry {
    if (this.#closing.signal.aborted) throw new SandboxError("closed", "The server is being shut down");
    this.assertRoom(owner);
    const opening = this.#open(options, this.#closing.signal);
    const entry: Entry = { opening };
    const entries = this.#of(owner);
    this.#byOwner.set(owner, entries.add(entry));
    opening.then(
      (sandbox) => {
        entry.sandbox = sandbox;
      },
      () => entries.delete(entry),
    );
    return entry;
  }

  #of(owner: string): Set<Entry> {
    const known = this.#byOwner.get(owner) ?? new Set<Entry>();
    this.#byOwner.set(owner, known);
    return known;
  }
}

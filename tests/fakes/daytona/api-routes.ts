import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Habits } from "./habits.js";
import { type Exchange, json, objectOf, Refusal, textOf } from "./reply.js";
import { applyNetwork, createEntry, type SandboxEntry, toDto } from "./sandbox-state.js";
import { assertResizable, assertWithin, builtInSize, sizeOf } from "./sizes.js";
import { buildOutcome, SnapshotRoutes } from "./snapshot-routes.js";

/** The API: sandboxes. */
export class ApiRoutes {
  readonly sandboxes: Map<string, SandboxEntry> = new Map();
  readonly snapshots: SnapshotRoutes;
  /** Signed previews: token to sandbox and port. */
  readonly previews: Map<string, { entry: SandboxEntry; port: number }> = new Map();
  readonly #habits: Habits;
  readonly #origin: () => string;
  /** Told of every change of a state. */
  onState: ((entry: SandboxEntry, oldState: string) => void) | undefined;

  constructor(habits: Habits, origin: () => string) {
    this.#habits = habits;
    this.#origin = origin;
    this.snapshots = new SnapshotRoutes(habits, origin);
  }

  async handle(exchange: Exchange): Promise<boolean> {
    const [, kind, id = "", verb, argument, last] = exchange.path.split("/");
    if (kind === "snapshots") return await this.snapshots.handle(exchange, id, verb);
    if (kind !== "sandbox") return false;
    const { method, request, response } = exchange;
    if (id === "" && method === "POST")
      json(response, 200, toDto(this.#create(await objectOf(request)), this.#origin()));
    else if (id === "") this.#list(exchange);
    else {
      const entry = this.find(id);
      if (verb === undefined && method === "DELETE") this.#delete(entry);
      else if (verb === "stop") await this.#stop(entry);
      else if (verb === "start") this.#set(entry, "started");
      else if (verb === "autostop") entry.autoStopInterval = Number(argument);
      else if (verb === "autodelete") entry.autoDeleteInterval = Number(argument);
      else if (verb === "last-activity") entry.activity += 1;
      else if (verb === "labels") Object.assign(entry.labels, (await objectOf(request))["labels"]);
      else if (verb === "network-settings") this.#network(entry, await objectOf(request));
      else if (verb === "snapshot") this.snapshots.save(entry, textOf(await objectOf(request), "name"));
      else if (verb === "resize") this.#resize(entry, await objectOf(request));
      else if (verb === "fork" || verb === "pause")
        throw new Refusal(422, `${verb} is not supported for this sandbox class`);
      else if (verb === "ports" && (last === "signed-preview-url" || last === "preview-url")) {
        const token = randomUUID();
        const port = Number(argument);
        this.previews.set(token, { entry, port });
        json(response, 200, { sandboxId: entry.id, port, token, url: `${this.#origin()}/preview/${token}/` });
        return true;
      } else if (verb !== undefined && !["ttl", "recover", "archive"].includes(verb)) return false;
      json(response, 200, toDto(entry, this.#origin()));
    }
    return true;
  }

  /** A sandbox by its id or name. */
  find(id: string): SandboxEntry {
    const found =
      this.sandboxes.get(id) ?? [...this.sandboxes.values()].find(({ name }) => name === decodeURIComponent(id));
    if (found === undefined) throw new Refusal(404, `Sandbox with ID or name ${id} not found`);
    return found;
  }

  /** Everything is gone. */
  async close(): Promise<void> {
    for (const { machine } of this.sandboxes.values()) await machine.remove();
    this.snapshots.close();
    this.sandboxes.clear();
  }

  #create(asked: Record<string, unknown>): SandboxEntry {
    const { name, snapshot } = asked;
    if (typeof name === "string" && [...this.sandboxes.values()].some((entry) => entry.name === name)) {
      throw new Refusal(409, `Sandbox with name ${name} already exists`);
    }
    const rules = ["networkBlockAll", "domainAllowList", "networkAllowList"].filter((key) => asked[key] !== undefined);
    if (this.#habits.fixedNetwork && rules.length > 0) {
      throw new Refusal(400, "Network access is fixed for your tier. Remove networkBlockAll and domainAllowList.");
    }
    if (this.#habits.ignoresNetwork) for (const rule of rules) delete asked[rule];
    const saved = typeof snapshot === "string" ? this.snapshots.usable(snapshot) : undefined;
    const size = typeof snapshot === "string" ? (saved?.size ?? builtInSize(snapshot)) : sizeOf(asked);
    if (size === undefined) {
      throw new Refusal(400, `Snapshot ${snapshot} not found. Did you add it through the Daytona Dashboard?`);
    }
    if (snapshot !== undefined && ["cpu", "memory", "disk"].some((key) => asked[key] !== undefined)) {
      throw new Refusal(400, "Cannot specify Sandbox resources when using a snapshot");
    }
    assertWithin(this.#habits.largest, size);
    const entry = createEntry(asked, this.#habits, size, saved?.files);
    this.sandboxes.set(entry.id, entry);
    void this.#bringUp(entry);
    return entry;
  }

  /** Without a wait this is done before the first answer. */
  async #bringUp(entry: SandboxEntry): Promise<void> {
    const { buildInfo } = entry.asked;
    if (buildInfo !== undefined) {
      if (this.#habits.buildMs > 0) await sleep(this.#habits.buildMs);
      this.#set(entry, "building_snapshot");
      if (this.#habits.buildMs > 0) await sleep(this.#habits.buildMs);
      entry.errorReason = buildOutcome(this.#habits, buildInfo);
      if (entry.errorReason !== undefined) {
        this.#set(entry, "build_failed");
        return;
      }
    }
    if (this.#habits.createMs > 0) await sleep(this.#habits.createMs);
    this.#set(entry, "started");
  }

  /** A machine that runs goes on meanwhile. */
  #resize(entry: SandboxEntry, asked: Record<string, unknown>): void {
    const size = sizeOf(asked, entry.size);
    assertResizable(entry.state, entry.size, size);
    assertWithin(this.#habits.largest, size);
    const before = entry.state;
    entry.size = size;
    this.#set(entry, "resizing");
    void sleep(this.#habits.buildMs).then(() => this.#set(entry, before));
  }

  #list({ query, response }: Exchange): void {
    const wanted = Object.entries(JSON.parse(query.get("labels") ?? "{}") as Record<string, string>);
    const found = [...this.sandboxes.values()].filter(({ labels }) =>
      wanted.every(([key, value]) => labels[key] === value),
    );
    const start = Number(query.get("cursor") ?? 0);
    const limit = Number(query.get("limit") ?? 100);
    const items = found.slice(start, start + limit).map((entry) => {
      const { env: _, ...item } = toDto(entry, this.#origin());
      return item;
    });
    json(response, 200, { items, nextCursor: start + limit < found.length ? String(start + limit) : null });
  }

  #delete(entry: SandboxEntry): void {
    if (entry.state === "destroying") return;
    this.#set(entry, "destroying");
    entry.processes.cutFollowers();
    void entry.machine
      .remove()
      .then(() => sleep(this.#habits.deleteMs))
      .then(() => {
        this.sandboxes.delete(entry.id);
        this.#set(entry, "destroyed");
      });
  }

  async #stop(entry: SandboxEntry): Promise<void> {
    if (entry.state !== "started") throw new Refusal(400, "Sandbox is not started");
    await entry.machine.halt();
    entry.processes.cutFollowers();
    entry.processes.sessions.clear();
    this.#set(entry, "stopped");
    if (entry.autoDeleteInterval === 0) this.#delete(entry);
  }

  #network(entry: SandboxEntry, body: Record<string, unknown>): void {
    if (this.#habits.fixedNetwork) throw new Refusal(400, "Network access is fixed for your tier.");
    if (typeof body["networkBlockAll"] === "boolean") entry.networkBlockAll = body["networkBlockAll"];
    for (const list of ["domainAllowList", "networkAllowList"] as const) {
      if (typeof body[list] === "string") entry[list] = body[list];
    }
    applyNetwork(entry);
  }

  #set(entry: SandboxEntry, state: string): void {
    const old = entry.state;
    entry.state = state;
    this.onState?.(entry, old);
  }
}

import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Habits } from "./habits.js";
import { type Exchange, json, objectOf, Refusal } from "./reply.js";
import { applyNetwork, createEntry, type SandboxEntry, toDto } from "./sandbox-state.js";
import { assertResizable, assertWithin, builtInSize, sizeOf } from "./sizes.js";
import { buildOutcome, SnapshotRoutes } from "./snapshot-routes.js";
import { checkBody, wholeOf } from "./strict-body.js";

/** Of a list, unless it is asked for another; and the most. */
const PAGE = 100;
const LARGEST_PAGE = 200;
/** Of an address that is signed, unless it is asked for another; and the most. */
const SIGNED_SECONDS = 60;
const LONGEST_SIGNED = 24 * 3600;

/** An address of a port: a signed one is enough by itself for its time, another one needs its token in a header. */
export interface Preview {
  readonly entry: SandboxEntry;
  readonly port: number;
  readonly until: number | undefined;
}

/** The API: sandboxes. */
export class ApiRoutes {
  readonly sandboxes: Map<string, SandboxEntry> = new Map();
  readonly snapshots: SnapshotRoutes;
  /** By their token. */
  readonly previews: Map<string, Preview> = new Map();
  readonly #habits: Habits;
  readonly #origin: () => string;
  readonly #idleness: NodeJS.Timeout;
  /** Told of every change of a state. */
  onState: ((entry: SandboxEntry, oldState: string) => void) | undefined;

  constructor(habits: Habits, origin: () => string) {
    this.#habits = habits;
    this.#origin = origin;
    this.snapshots = new SnapshotRoutes(habits, origin);
    this.#idleness = setInterval(() => this.#stopIdle(), 50).unref();
  }

  async handle(exchange: Exchange): Promise<boolean> {
    const [, kind, id = "", ...rest] = exchange.path.split("/");
    if (kind === "snapshots") return await this.snapshots.handle(exchange, id, rest[0]);
    if (kind !== "sandbox") return false;
    const { method, request, response } = exchange;
    if (id === "") {
      if (method === "POST") json(response, 200, this.#dto(this.#create(await objectOf(request))));
      else if (method === "GET") this.#list(exchange);
      else return false;
      return true;
    }
    const entry = this.find(id);
    const answer = await this.#act(entry, `${method} ${rest.join("/")}`, exchange);
    if (answer === undefined) return false;
    json(response, 200, answer === "empty" ? undefined : answer);
    return true;
  }

  /** Does what a request asks for of a sandbox; undefined when the API has no such route. */
  async #act(entry: SandboxEntry, route: string, { request, query }: Exchange): Promise<unknown> {
    const body = (): Promise<Record<string, unknown>> => objectOf(request);
    const [verb = "", argument] = route.replace(/^[A-Z]+ /, "").split("/");
    switch (route.replace(/\/[^/]+(?=\/|$)/, "/*")) {
      case "GET ":
        break;
      case "DELETE ":
        this.#assertSettled(entry, "destroying");
        this.#delete(entry);
        break;
      case "POST stop":
        await this.#stop(entry);
        break;
      case "POST start":
        this.#start(entry);
        break;
      case "POST autostop/*":
        entry.autoStopInterval = wholeOf(argument, "interval", 0);
        break;
      case "POST autodelete/*":
        entry.autoDeleteInterval = wholeOf(argument, "interval", -1);
        break;
      case "POST ttl/*":
        entry.ttlMinutes = wholeOf(argument, "ttl", 0);
        break;
      case "POST last-activity":
        entry.activity += 1;
        entry.usedAt = performance.now();
        return "empty";
      case "PUT labels": {
        const asked = await body();
        checkBody("labels", asked, "labels");
        // What is not named is gone.
        entry.labels = asked["labels"] as Record<string, string>;
        return { labels: entry.labels };
      }
      case "POST network-settings":
        this.#network(entry, await body());
        break;
      case "POST snapshot": {
        const asked = await body();
        checkBody("snapshot", asked, "name");
        if (asked["includeMemory"] === true) throw new Refusal(400, "Container sandboxes have no memory snapshots");
        this.#save(entry, String(asked["name"]));
        break;
      }
      case "POST resize":
        this.#resize(entry, await body());
        break;
      case "POST fork":
      case "POST pause":
        throw new Refusal(422, `${verb} is not supported for this sandbox class`);
      case "POST archive":
        if (entry.state !== "stopped") throw new Refusal(400, "Sandbox is not stopped");
        this.#set(entry, "archived");
        break;
      case "POST recover":
        if (entry.state !== "error") throw new Refusal(400, "Sandbox must be in error state to recover");
        break;
      case "GET ports/*/signed-preview-url":
        return this.#preview(entry, argument, query.get("expiresInSeconds") ?? String(SIGNED_SECONDS));
      case "GET ports/*/preview-url":
        return this.#preview(entry, argument);
      default:
        return undefined;
    }
    return this.#dto(entry);
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
    clearInterval(this.#idleness);
    for (const { machine } of this.sandboxes.values()) await machine.remove();
    this.snapshots.close();
    this.sandboxes.clear();
  }

  #dto(entry: SandboxEntry): Record<string, unknown> {
    return toDto(entry, this.#origin());
  }

  #create(asked: Record<string, unknown>): SandboxEntry {
    checkBody("create", asked);
    const { name, snapshot, buildInfo } = asked;
    if (snapshot !== undefined && buildInfo !== undefined) {
      throw new Refusal(400, "Cannot specify both a snapshot and build info");
    }
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
    // One that names no image has the snapshot of the organisation.
    if (buildInfo === undefined && ["cpu", "memory", "disk"].some((key) => asked[key] !== undefined)) {
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

  /** While a sandbox is on its way from one state to another it goes to no third. */
  #assertSettled({ state }: SandboxEntry, ...except: string[]): void {
    if (/(ing|_snapshot|_build)$/.test(state) && !except.includes(state)) {
      throw new Refusal(409, "Sandbox state change in progress");
    }
  }

  /** A machine that runs goes on meanwhile. */
  #resize(entry: SandboxEntry, asked: Record<string, unknown>): void {
    checkBody("resize", asked);
    this.#assertSettled(entry);
    if (!["started", "stopped"].includes(entry.state)) throw new Refusal(400, "Sandbox is not in valid state");
    const size = sizeOf(asked, entry.size);
    assertResizable(entry.state, entry.size, size);
    assertWithin(this.#habits.largest, size);
    const before = entry.state;
    entry.size = size;
    this.#set(entry, "resizing");
    void sleep(this.#habits.buildMs).then(() => this.#set(entry, before));
  }

  #save(entry: SandboxEntry, name: string): void {
    this.#assertSettled(entry);
    const before = entry.state;
    if (!["started", "stopped"].includes(before)) throw new Refusal(400, "Sandbox is not in valid state");
    this.snapshots.save(entry, name);
    this.#set(entry, "snapshotting");
    void sleep(this.#habits.transitMs).then(() => {
      this.snapshots.finish(name);
      if (entry.state === "snapshotting") this.#set(entry, before);
    });
  }

  #list({ query, response }: Exchange): void {
    const wanted = Object.entries(labelsOf(query.get("labels") ?? "{}"));
    const states = query.getAll("states");
    const found = [...this.sandboxes.values()].filter(
      ({ labels, state }) =>
        wanted.every(([key, value]) => labels[key] === value) && (states.length === 0 || states.includes(state)),
    );
    const limit = wholeOf(query.get("limit") ?? String(PAGE), "limit", 1);
    if (limit > LARGEST_PAGE) throw new Refusal(400, `limit must not be greater than ${LARGEST_PAGE}`);
    const start = startOf(query.get("cursor"));
    const items = found.slice(start, start + limit).map((entry) => {
      const { env: _, ...item } = this.#dto(entry);
      return item;
    });
    const next = start + limit < found.length ? Buffer.from(`after ${start + limit}`).toString("base64url") : null;
    json(response, 200, { items, nextCursor: next });
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

  #start(entry: SandboxEntry): void {
    this.#assertSettled(entry);
    if (!["stopped", "archived"].includes(entry.state)) throw new Refusal(400, "Sandbox is not in valid state");
    this.#set(entry, "starting");
    entry.usedAt = performance.now();
    void sleep(this.#habits.transitMs).then(() => {
      if (entry.state === "starting") this.#set(entry, "started");
    });
  }

  async #stop(entry: SandboxEntry): Promise<void> {
    this.#assertSettled(entry);
    if (entry.state !== "started") throw new Refusal(400, "Sandbox is not started");
    this.#set(entry, "stopping");
    await entry.machine.halt();
    entry.processes.cutFollowers();
    entry.processes.sessions.clear();
    void sleep(this.#habits.transitMs).then(() => {
      if (entry.state !== "stopping") return;
      this.#set(entry, "stopped");
      if (entry.autoDeleteInterval === 0) this.#delete(entry);
    });
  }

  /** What nobody uses for its time is stopped: a process inside is no use. */
  #stopIdle(): void {
    const { minuteMs } = this.#habits;
    for (const entry of this.sandboxes.values()) {
      const { state, autoStopInterval, uses, usedAt } = entry;
      if (state !== "started" || autoStopInterval === 0 || uses > 0) continue;
      if (performance.now() - usedAt >= autoStopInterval * minuteMs) void this.#stop(entry);
    }
  }

  #network(entry: SandboxEntry, body: Record<string, unknown>): void {
    checkBody("network", body);
    if (this.#habits.fixedNetwork) throw new Refusal(400, "Network access is fixed for your tier.");
    if (typeof body["networkBlockAll"] === "boolean") entry.networkBlockAll = body["networkBlockAll"];
    for (const list of ["domainAllowList", "networkAllowList"] as const) {
      if (typeof body[list] === "string") entry[list] = body[list];
    }
    applyNetwork(entry);
  }

  #preview(entry: SandboxEntry, argument: string | undefined, seconds?: string): unknown {
    const port = wholeOf(argument, "port", 1);
    if (port > 65_535) throw new Refusal(400, "port must not be greater than 65535");
    const lasts = seconds === undefined ? undefined : wholeOf(seconds, "expiresInSeconds", 1);
    if ((lasts ?? 0) > LONGEST_SIGNED)
      throw new Refusal(400, `expiresInSeconds must not be greater than ${LONGEST_SIGNED}`);
    const token = randomUUID();
    const until = lasts === undefined ? undefined : performance.now() + lasts * 1_000;
    this.previews.set(token, { entry, port, until });
    const address = { sandboxId: entry.id, token, url: `${this.#origin()}/preview/${token}/` };
    return lasts === undefined ? address : { ...address, port };
  }

  #set(entry: SandboxEntry, state: string): void {
    const old = entry.state;
    entry.state = state;
    this.onState?.(entry, old);
  }
}

function labelsOf(text: string): Record<string, string> {
  try {
    const labels = JSON.parse(text) as unknown;
    checkBody("labels", { labels }, "labels");
    return labels as Record<string, string>;
  } catch {
    throw new Refusal(400, "Invalid labels JSON format");
  }
}

function startOf(cursor: string | null): number {
  if (cursor === null) return 0;
  const found = /^after (\d+)$/.exec(Buffer.from(cursor, "base64url").toString())?.[1];
  if (found === undefined) throw new Refusal(400, "Invalid cursor");
  return Number(found);
}

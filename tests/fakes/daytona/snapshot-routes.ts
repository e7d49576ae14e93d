import { randomUUID } from "node:crypto";
import type { ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { Habits } from "./habits.js";
import { discard, saveMachine } from "./machine.js";
import { type Exchange, json, objectOf, Refusal, textOf } from "./reply.js";
import type { SandboxEntry } from "./sandbox-state.js";
import { assertWithin, type Size, sizeOf } from "./sizes.js";
import { checkBody } from "./strict-body.js";

/** A saved state of a machine, or an image. */
export interface SnapshotEntry {
  readonly id: string;
  readonly name: string;
  state: string;
  errorReason?: string;
  readonly size: Size;
  /** The folder with its files; absent for an image. */
  readonly files?: string;
  readonly asked: Record<string, unknown>;
}

/** Why a build fails, if it does. */
export function buildOutcome({ failingBuild }: Habits, buildInfo: unknown): string | undefined {
  const text = String((buildInfo as { dockerfileContent?: unknown }).dockerfileContent);
  const found = failingBuild?.exec(text)?.[0];
  return found === undefined ? undefined : `build failed at ${found}`;
}

/** Snapshots of the account. */
export class SnapshotRoutes {
  readonly all: Map<string, SnapshotEntry> = new Map();
  readonly #habits: Habits;
  readonly #origin: () => string;

  constructor(habits: Habits, origin: () => string) {
    this.#habits = habits;
    this.#origin = origin;
  }

  async handle({ method, request, response }: Exchange, id: string, verb: string | undefined): Promise<boolean> {
    if (id === "" && method === "POST") {
      json(response, 200, this.#build(await objectOf(request)));
      return true;
    }
    if (id === "") {
      const items = [...this.all.values()];
      json(response, 200, { items, total: items.length, page: 1, totalPages: 1 });
      return method === "GET";
    }
    const found = [...this.all.values()].find((each) => each.id === id || each.name === decodeURIComponent(id));
    if (found === undefined) throw new Refusal(404, `Snapshot ${id} not found`);
    if (`${method} ${verb ?? ""}` === "GET build-logs-url")
      json(response, 200, { url: `${this.#origin()}/build-logs/${found.id}` });
    else if (verb === "activate" && method === "POST") {
      if (found.state === "active") throw new Refusal(400, `Snapshot ${found.name} is already active`);
      if (found.state !== "inactive") throw new Refusal(400, `Snapshot ${found.name} cannot be activated`);
      found.state = "active";
      json(response, 200, found);
    } else if (method === "DELETE" && verb === undefined) {
      this.all.delete(found.name);
      if (found.files !== undefined) discard(found.files);
      json(response, 200);
    } else if (method === "GET" && verb === undefined) json(response, 200, found);
    else return false;
    return true;
  }

  /** One that a sandbox can be made of; undefined when there is none of this name. */
  usable(name: string): SnapshotEntry | undefined {
    const found = this.all.get(name);
    if (found !== undefined && found.state !== "active") throw new Refusal(400, `Snapshot ${name} is ${found.state}`);
    return found;
  }

  /** Keeps a machine as it is now. */
  save({ machine, size }: SandboxEntry, name: string): void {
    this.#assertNew(name);
    const files = saveMachine(machine);
    this.all.set(name, { id: randomUUID(), name, state: "pending", size: { ...size }, files, asked: {} });
  }

  /** The state of a machine is kept. */
  finish(name: string): void {
    const found = this.all.get(name);
    if (found !== undefined) found.state = "active";
  }

  /** What a build says, as long as it goes on. */
  sendLog(path: string, response: ServerResponse): void {
    const found = [...this.all.values()].find(({ id }) => path.endsWith(id));
    const { dockerfileContent = "" } = (found?.asked["buildInfo"] ?? {}) as { dockerfileContent?: string };
    response.writeHead(200, { "Content-Type": "text/plain" });
    response.end(dockerfileContent.replaceAll(/^/gm, "step: "));
  }

  close(): void {
    for (const { files } of this.all.values()) if (files !== undefined) discard(files);
  }

  #assertNew(name: string): void {
    if (this.all.has(name)) throw new Refusal(409, `Snapshot with name ${name} already exists`);
  }

  #build(asked: Record<string, unknown>): SnapshotEntry {
    checkBody("build", asked, "name");
    if (asked["imageName"] === undefined && asked["buildInfo"] === undefined) {
      throw new Refusal(400, "Either imageName or buildInfo must be given");
    }
    const name = textOf(asked, "name");
    this.#assertNew(name);
    const size = sizeOf(asked);
    assertWithin(this.#habits.largest, size);
    const made: SnapshotEntry = { id: randomUUID(), name, state: "building", size, asked };
    this.all.set(name, made);
    const end = (): void => {
      const reason = buildOutcome(this.#habits, asked["buildInfo"]);
      if (reason !== undefined) made.errorReason = reason;
      made.state = reason === undefined ? "active" : "build_failed";
    };
    if (this.#habits.buildMs === 0) end();
    else void sleep(this.#habits.buildMs).then(end);
    return made;
  }
}

import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { describeBoth, describeCommand, describeSandbox, describeSession, describeSnapshot, page } from "./answers.js";
import {
  checkCommand,
  checkCreate,
  checkDuration,
  checkPolicy,
  checkSnapshot,
  checkUpdate,
  type Json,
} from "./checks.js";
import { answerFault, type Fault, Faults } from "./faults.js";
import { type FakeMachine, inParts } from "./machine.js";
import { Refusal } from "./refusal.js";
import {
  newId,
  type StoredCommand,
  type StoredSandbox,
  type StoredSession,
  type StoredSnapshot,
  VercelStore,
} from "./store.js";
import { readArchive } from "./tar.js";

/** Who the service lets in. */
export const TOKEN = "vercel-test-token";
export const TEAM = "team_test";
export const PROJECT = "prj_test";

const PART_DELAY = 2;

interface Request {
  readonly line: string;
  readonly query: URLSearchParams;
  readonly body: Json;
  readonly raw: Buffer;
  readonly headers: IncomingMessage["headers"];
}

/** Stands for the Vercel Sandbox service: the real wire, real commands, state, and faults that can be switched on. */
export class FakeVercel {
  readonly faults: Faults = new Faults();
  /** Where repositories of a host are in truth, for example `https://git.example` at `http://127.0.0.1:1234`. */
  readonly hosts: Map<string, string> = new Map();
  /** `METHOD /path` of every request, in order. */
  readonly requests: { line: string; body: Json }[] = [];
  /** What the service has, and what its plan allows. */
  readonly store: VercelStore = new VercelStore();
  /** Whether the token has expired. */
  hasExpired = false;
  readonly #server = createServer((request, response) => void this.#serve(request, response));
  #origin = "";

  /** Starts the service on the loopback of this host. */
  static async start(): Promise<FakeVercel> {
    const fake = new FakeVercel();
    fake.#server.listen(0, "127.0.0.1");
    await once(fake.#server, "listening");
    fake.#server.unref();
    fake.#origin = `http://127.0.0.1:${(fake.#server.address() as AddressInfo).port}`;
    return fake;
  }

  /** The address of its API. */
  get api(): string {
    return this.#origin;
  }

  /** What the SDK is given to reach it. */
  readonly fetch: typeof globalThis.fetch = (input, init) =>
    globalThis.fetch(String(input).replace("https://vercel.com/api", this.#origin), init);

  /** Everything of the options that leads here. */
  get options(): { token: string; teamId: string; projectId: string; fetch: typeof globalThis.fetch } {
    return { token: TOKEN, teamId: TEAM, projectId: PROJECT, fetch: this.fetch };
  }

  /** Names of machines that run or are kept, and of snapshots. */
  census(): string[] {
    return [...this.store.sandboxes().map(({ name }) => name), ...this.store.snapshots().map(({ id }) => id)];
  }

  /** Snapshots of the machines that a sandbox has or had, the oldest first. */
  snapshotsOf(prefix: string): StoredSnapshot[] {
    return this.store.snapshots().filter(({ sandbox }) => sandbox.startsWith(prefix));
  }

  /** What a sandbox was created with. */
  paramsOf(prefix: string): Json {
    return this.#find(prefix).params;
  }

  /** What the network allows: now, and when the machine is resumed. */
  policiesOf(prefix: string): { session: Json; sandbox: Json } {
    const { session, policy } = this.#find(prefix);
    return { session: session.policy, sandbox: policy };
  }

  /** How many streams of logs of a sandbox are open. */
  listeners(prefix: string): number {
    const commands = [...this.#find(prefix).session.commands.values()];
    return commands.reduce((sum, { watchers }) => sum + watchers.size, 0);
  }

  /** Stops the machine of a sandbox as if its time were over. */
  async stopMachine(prefix: string): Promise<void> {
    await this.store.stop(this.#find(prefix).session);
  }

  async close(): Promise<void> {
    await this.store.close();
    this.#server.closeAllConnections();
    this.#server.close();
  }

  #find(prefix: string): StoredSandbox {
    const found = this.store.sandboxes().findLast(({ name }) => name.startsWith(prefix));
    if (found === undefined) throw new Error(`no sandbox ${prefix}`);
    return found;
  }

  async #serve(message: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(message.url ?? "/", this.#origin);
    const line = `${message.method} ${url.pathname}`;
    const pieces: Buffer[] = [];
    try {
      for await (const piece of message) pieces.push(piece as Buffer);
    } catch {
      return;
    }
    const raw = Buffer.concat(pieces);
    const isArchive = message.headers["content-type"] === "application/gzip";
    const body = (isArchive || raw.length === 0 ? {} : JSON.parse(raw.toString())) as Json;
    this.requests.push({ line: `${line}${url.search}`, body });
    const fault = this.faults.take(line);
    if (answerFault(fault, message, response)) return;
    const request = { line, query: url.searchParams, body, raw, headers: message.headers };
    try {
      this.#authorize(request);
      const logs = /^GET \/v2\/sandboxes\/sessions\/([^/]+)\/cmd\/([^/]+)\/logs$/.exec(line);
      if (logs !== null) {
        sendLogs(this.store.session(logs[1] ?? ""), logs[2] ?? "", response, fault);
        return;
      }
      const answer = await this.#answer(request);
      if (fault === "reset-after") message.socket.resetAndDestroy();
      else if (answer instanceof Buffer) await sendInParts(response, answer);
      else response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer));
    } catch (error) {
      const { status, code, details } =
        error instanceof Refusal ? error : { status: 500, code: "internal", details: {} };
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify({ error: { code, message: (error as Error).message, ...details } }));
    }
  }

  /** Every request names the team, and those about a project name that, too. */
  #authorize({ line, query, body, headers }: Request): void {
    if (headers.authorization !== `Bearer ${TOKEN}` || this.hasExpired) {
      throw new Refusal(403, "forbidden", "Not authorized", { invalidToken: true });
    }
    if (query.get("teamId") !== TEAM) throw new Refusal(403, "forbidden", "Not authorized: another scope");
    if (/^\w+ \/v2\/sandboxes\/(sessions|snapshots)\//.test(line)) return;
    const isCreate = /^POST \/v[23]\/sandboxes$/.test(line);
    const project = isCreate ? body["projectId"] : (query.get("projectId") ?? query.get("project"));
    if (project !== PROJECT) throw new Refusal(404, "not_found", `There is no project ${String(project)}`);
  }

  async #answer(request: Request): Promise<Json | Buffer> {
    const { line, query } = request;
    const [, sid = "", verb = ""] = /\/sessions\/([^/]+)\/?(.*)$/.exec(line) ?? [];
    if (sid !== "") return await this.#inSession(request, this.store.session(sid), verb);
    const snapshot = /\/snapshots\/([^/]+)$/.exec(line)?.[1];
    if (snapshot !== undefined) return this.#snapshot(line, this.store.snapshot(snapshot));
    if (line === "GET /v2/sandboxes/snapshots") {
      const name = query.get("name");
      const all = this.store.snapshots().filter(({ sandbox }) => name === null || sandbox === name);
      const { items, pagination } = page(all.toReversed(), query);
      return { snapshots: items.map(describeSnapshot), pagination };
    }
    if (/^POST \/v[23]\/sandboxes$/.test(line)) return await this.#create(request);
    if (line === "GET /v2/sandboxes") {
      const prefix = query.get("namePrefix") ?? "";
      const all = this.store.sandboxes().filter(({ name }) => name.startsWith(prefix));
      const { items, pagination } = page(all, query);
      return { sandboxes: items.map(describeSandbox), pagination };
    }
    const name = decodeURIComponent(/^\w+ \/v2\/sandboxes\/([^/]+)$/.exec(line)?.[1] ?? "");
    return await this.#byName(request, await this.store.booted(name));
  }

  async #byName({ line, query, body }: Request, sandbox: StoredSandbox): Promise<Json> {
    switch (line.split(" ")[0]) {
      case "GET": {
        const resumed = query.get("resume") === "true" && (await this.store.resume(sandbox));
        return { ...describeBoth(sandbox), resumed };
      }
      case "DELETE":
        await this.store.remove(sandbox, query.get("deleteOrphanSnapshots") === "true");
        return { sandbox: describeSandbox(sandbox) };
      case "PATCH":
        checkUpdate(body);
        await this.store.update(sandbox, body);
        return { sandbox: describeSandbox(sandbox), routes: sandbox.session.routes };
      default:
        throw new Refusal(404, "not_found", `unknown ${line}`);
    }
  }

  async #create({ line, body }: Request): Promise<Json> {
    checkCreate(line, body);
    const sandbox = await this.store.create(body);
    const source = body["source"] as Json | undefined;
    if (source?.["type"] === "git") await this.#clone(sandbox.session, source);
    return describeBoth(sandbox);
  }

  /** At its worst: the credentials stay in the settings of the clone. */
  async #clone({ machine }: StoredSession, source: Json): Promise<void> {
    const asked = new URL(String(source["url"]));
    const url = new URL(asked.pathname, this.hosts.get(asked.origin) ?? asked.origin);
    if (source["password"] !== undefined) {
      url.username = String(source["username"]);
      url.password = String(source["password"]);
    }
    const run = machine?.run({ command: "git", args: ["clone", "--quiet", url.href, "."] });
    let said = "";
    run?.child.stderr?.on("data", (piece) => {
      said += String(piece);
    });
    if ((await run?.exit) !== 0) throw new Refusal(400, "bad_request", `The repository cannot be cloned: ${said}`);
  }

  async #inSession(request: Request, session: StoredSession, verb: string): Promise<Json | Buffer> {
    const { line, query, body, raw, headers } = request;
    if (line.startsWith("GET") && verb === "") return { session: describeSession(session), routes: session.routes };
    const { machine } = session;
    if (machine === undefined) throw isOver(session);
    const [, cid, what] = /^cmd\/([^/]+)\/?(.*)$/.exec(verb) ?? [];
    if (cid !== undefined) return await inCommand(session, cid, what ?? "", query, body);
    switch (verb) {
      case "cmd":
        checkCommand(body);
        return { command: describeCommand(session, startCommand(session, machine, body)) };
      case "fs/write":
        if (headers["x-cwd"] !== "/") throw new Refusal(400, "bad_request", "x-cwd is not the root");
        await machine.write(readArchive(raw));
        return {};
      case "fs/read": {
        const content = machine.read(String(body["path"]));
        if (content === undefined) throw new Refusal(404, "not_found", "no such file");
        return content;
      }
      case "stop": {
        const snapshot = await this.store.stop(session);
        const sandbox = describeSandbox(this.store.sandbox(session.sandbox));
        const saved = snapshot && { snapshot: describeSnapshot(snapshot) };
        return { session: describeSession(session), sandbox, ...saved };
      }
      case "extend-timeout":
        checkDuration(body);
        this.store.extend(session, Number(body["duration"]));
        return { session: describeSession(session) };
      case "network-policy":
        checkPolicy(body);
        session.policy = body;
        machine.isCutOff = body["mode"] !== "allow-all";
        return { session: describeSession(session) };
      case "snapshot": {
        checkSnapshot(body);
        const snapshot = await this.store.saveSession(session, body["expiration"] as number | undefined);
        return { snapshot: describeSnapshot(snapshot), session: describeSession(session) };
      }
      default:
        throw new Refusal(404, "not_found", `unknown ${line}`);
    }
  }

  #snapshot(line: string, snapshot: StoredSnapshot): Json {
    if (line.startsWith("DELETE")) this.store.removeSnapshot(snapshot);
    return { snapshot: describeSnapshot(snapshot) };
  }
}

function isOver({ status }: StoredSession): Refusal {
  if (status === "stopped") return new Refusal(410, "sandbox_stopped", "The sandbox has stopped");
  return new Refusal(422, `sandbox_${status}`, `The sandbox is ${status}`);
}

async function inCommand(
  session: StoredSession,
  cid: string,
  what: string,
  query: URLSearchParams,
  body: Json,
): Promise<Json> {
  const command = session.commands.get(cid);
  if (command === undefined) throw new Refusal(404, "not_found", "There is no such command");
  if (what === "kill") command.run.kill(Number(body["signal"]));
  if (query.get("wait") === "true") await command.ended;
  return { command: describeCommand(session, command) };
}

async function sendInParts(response: ServerResponse, content: Buffer): Promise<void> {
  response.writeHead(200, { "content-type": "application/octet-stream" });
  for (const part of inParts(content)) {
    response.write(part);
    await delay(PART_DELAY);
  }
  response.end();
}

function sendLogs(session: StoredSession, cid: string, response: ServerResponse, fault: Fault | undefined): void {
  const command = session.commands.get(cid);
  if (session.machine === undefined) throw isOver(session);
  if (command === undefined) throw new Refusal(404, "not_found", "There is no such command");
  response.writeHead(200, { "content-type": "application/x-ndjson" });
  response.flushHeaders();
  let sent = 0;
  const send = (): void => {
    for (; sent < command.lines.length; sent++) {
      response.write(`${JSON.stringify(command.lines[sent])}\n`);
      if (fault === "cut") response.socket?.resetAndDestroy();
      if (fault === "cut" || fault === "early-end") {
        done();
        return;
      }
    }
    if (session.status !== "running") {
      const data = { code: "sandbox_stopped", message: "The sandbox has stopped" };
      response.write(`${JSON.stringify({ stream: "error", data })}\n`);
      done();
    } else if (command.exitCode !== null) done();
  };
  const done = (): void => {
    command.watchers.delete(send);
    response.end();
  };
  command.watchers.add(send);
  response.on("close", () => command.watchers.delete(send));
  send();
}

function startCommand(session: StoredSession, machine: FakeMachine, body: Json): StoredCommand {
  const order = { ...body, command: String(body["command"]), args: (body["args"] as string[] | undefined) ?? [] };
  const run = machine.run(order as Parameters<FakeMachine["run"]>[0]);
  const lines: StoredCommand["lines"] = [];
  const watchers = new Set<() => void>();
  const notify = (): void => {
    for (const watcher of [...watchers]) watcher();
  };
  for (const stream of ["stdout", "stderr"] as const) {
    run.child[stream]?.setEncoding("utf8");
    run.child[stream]?.on("data", (data: string) => {
      lines.push({ stream, data });
      notify();
    });
  }
  const command: StoredCommand = {
    id: `cmd_${newId()}`,
    order,
    run,
    lines,
    watchers,
    startedAt: Date.now(),
    exitCode: null,
    ended: once(run.child, "close").then(async () => {
      command.exitCode = await run.exit;
      notify();
    }),
  };
  session.commands.set(command.id, command);
  return command;
}

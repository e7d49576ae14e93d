import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { answerFault, type Fault, Faults } from "./vercel-faults.js";
import { copyFiles, FakeMachine, type MachineCommand, removeFiles } from "./vercel-machine.js";
import { readArchive } from "./vercel-tar.js";

/** Who the service lets in. */
export const TOKEN = "vercel-test-token";
export const TEAM = "team_test";
export const PROJECT = "prj_test";

type Json = Readonly<Record<string, unknown>>;

interface Command {
  readonly id: string;
  readonly order: Json;
  readonly run: MachineCommand;
  readonly lines: { stream: "stdout" | "stderr"; data: string }[];
  readonly startedAt: number;
  exitCode: number | null;
  readonly ended: Promise<void>;
  readonly watchers: Set<() => void>;
}

interface Session {
  readonly id: string;
  readonly sandbox: string;
  /** Not every image has the same layout. */
  readonly cwd: string;
  machine: FakeMachine | undefined;
  readonly commands: Map<string, Command>;
  status: "running" | "stopping" | "stopped" | "snapshotting";
  timeout: number;
  readonly createdAt: number;
  timer?: NodeJS.Timeout;
  routes: { url: string; subdomain: string; port: number }[];
}

interface StoredSandbox {
  readonly name: string;
  readonly persistent: boolean;
  readonly params: Json;
  session: Session;
  files: string;
  currentSnapshotId?: string;
}

class Refusal extends Error {
  readonly status: number;
  readonly code: string;
  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** Stands for the Vercel Sandbox service: the real wire, real commands, state, and faults that can be switched on. */
export class FakeVercel {
  readonly faults: Faults = new Faults();
  /** Where repositories of a host are in truth, for example `https://git.example` at `http://127.0.0.1:1234`. */
  readonly hosts: Map<string, string> = new Map();
  /** `METHOD /path` of every request, in order. */
  readonly requests: { line: string; body: Json }[] = [];
  readonly #sandboxes = new Map<string, StoredSandbox>();
  readonly #snapshots = new Map<string, { id: string; files: string; sessionId: string; createdAt: number }>();
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
    return [...this.#sandboxes.keys(), ...this.#snapshots.keys()];
  }

  /** What a sandbox was created with. */
  paramsOf(prefix: string): Json {
    return this.#find(prefix).params;
  }

  /** How many streams of logs of a sandbox are open. */
  listeners(prefix: string): number {
    const commands = [...this.#find(prefix).session.commands.values()];
    return commands.reduce((sum, { watchers }) => sum + watchers.size, 0);
  }

  /** Stops the machine of a sandbox as if its time were over. */
  async stopMachine(prefix: string): Promise<void> {
    await this.#stop(this.#find(prefix).session);
  }

  async close(): Promise<void> {
    for (const sandbox of this.#sandboxes.values()) {
      await this.#stop(sandbox.session);
      removeFiles(sandbox.files);
    }
    for (const { files } of this.#snapshots.values()) removeFiles(files);
    this.#server.closeAllConnections();
    this.#server.close();
  }

  #find(prefix: string): StoredSandbox {
    const found = [...this.#sandboxes.values()].findLast(({ name }) => name.startsWith(prefix));
    if (found === undefined) throw new Error(`no sandbox ${prefix}`);
    return found;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", this.#origin);
    const line = `${request.method} ${url.pathname}`;
    const pieces: Buffer[] = [];
    try {
      for await (const piece of request) pieces.push(piece as Buffer);
    } catch {
      return;
    }
    const raw = Buffer.concat(pieces);
    const isArchive = request.headers["content-type"] === "application/gzip";
    const body = (isArchive || raw.length === 0 ? {} : JSON.parse(raw.toString())) as Json;
    this.requests.push({ line: `${line}${url.search}`, body });
    const fault = this.faults.take(line);
    if (answerFault(fault, request, response)) return;
    try {
      if (request.headers.authorization !== `Bearer ${TOKEN}`) throw new Refusal(403, "forbidden", "Not authorized");
      const logs = /^GET \/v2\/sandboxes\/sessions\/([^/]+)\/cmd\/([^/]+)\/logs$/.exec(line);
      if (logs !== null) return this.#logs(this.#session(logs[1]), logs[2] ?? "", response, fault);
      const answer = await this.#answer(line, url.searchParams, body, raw);
      if (fault === "reset-after") request.socket.resetAndDestroy();
      else if (answer instanceof Buffer)
        response.writeHead(200, { "content-type": "application/octet-stream" }).end(answer);
      else response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer));
    } catch (error) {
      const { status, code } = error instanceof Refusal ? error : { status: 500, code: "internal" };
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify({ error: { code, message: (error as Error).message } }));
    }
  }

  async #answer(line: string, query: URLSearchParams, body: Json, raw: Buffer): Promise<Json | Buffer> {
    const [, sid = "", verb = ""] = /\/sessions\/([^/]+)\/?(.*)$/.exec(line) ?? [];
    if (sid !== "") return await this.#inSession(line, this.#session(sid), verb, query, body, raw);
    const snapshot = /\/snapshots\/([^/]+)$/.exec(line)?.[1];
    if (snapshot !== undefined) return this.#snapshot(line, snapshot);
    if (/^POST \/v[23]\/sandboxes$/.test(line)) return await this.#create(line, body);
    if (line === "GET /v2/sandboxes") {
      const prefix = query.get("namePrefix") ?? "";
      const sandboxes = [...this.#sandboxes.values()].filter(({ name }) => name.startsWith(prefix)).map(describe);
      return { sandboxes, pagination: { count: sandboxes.length, next: null } };
    }
    const name = decodeURIComponent(/^\w+ \/v2\/sandboxes\/([^/]+)$/.exec(line)?.[1] ?? "");
    const sandbox = this.#sandboxes.get(name);
    if (sandbox === undefined) throw new Refusal(404, "not_found", `There is no sandbox ${name}`);
    if (line.startsWith("GET")) {
      const resumed = query.get("resume") === "true" && sandbox.session.status === "stopped";
      if (resumed && !sandbox.persistent) throw new Refusal(410, "sandbox_stopped", "The sandbox is not persistent");
      if (resumed) sandbox.session = await this.#boot(sandbox);
      return { ...answerOf(sandbox), resumed };
    }
    if (line.startsWith("DELETE")) {
      await this.#stop(sandbox.session);
      removeFiles(sandbox.files);
      this.#sandboxes.delete(name);
      return { sandbox: describe(sandbox) };
    }
    const ports = body["ports"] as number[] | undefined;
    if (ports !== undefined) await this.#route(sandbox.session, ports);
    return { sandbox: describe(sandbox), routes: sandbox.session.routes };
  }

  async #create(line: string, body: Json): Promise<Json> {
    const name = (body["name"] as string | undefined) ?? `sandbox-${id()}`;
    if ((body["runtime"] !== undefined) !== line.includes("/v2/"))
      throw new Refusal(400, "bad_request", "wrong endpoint");
    if (this.#sandboxes.has(name)) {
      throw new Refusal(400, "bad_request", `A sandbox with the name ${name} already exists`);
    }
    const source = body["source"] as { type?: string; snapshotId?: string; url?: string } | undefined;
    const saved = source?.type === "snapshot" ? this.#snapshots.get(source.snapshotId ?? "") : undefined;
    if (source?.type === "snapshot" && saved === undefined) throw new Refusal(410, "snapshot_not_found", "No snapshot");
    const sandbox = {
      name,
      persistent: body["persistent"] !== false,
      params: body,
      files: saved === undefined ? FakeMachine.makeFiles() : copyFiles(saved.files),
    } as StoredSandbox;
    // The name is taken from here on, also for the same request that comes once more.
    this.#sandboxes.set(name, sandbox);
    sandbox.session = await this.#boot(sandbox);
    await this.#route(sandbox.session, (body["ports"] as number[] | undefined) ?? []);
    if (source?.type === "git") await this.#clone(sandbox.session, source as Json);
    return answerOf(sandbox);
  }

  async #boot(sandbox: StoredSandbox): Promise<Session> {
    const mode = (sandbox.params["networkPolicy"] as { mode?: string } | undefined)?.mode;
    const timeout = (sandbox.params["timeout"] as number | undefined) ?? 300_000;
    const session: Session = {
      id: `sbx_${id()}`,
      sandbox: sandbox.name,
      cwd: String(sandbox.params["image"]).startsWith("vercel/") ? "/vercel" : "/vercel/sandbox",
      machine: await FakeMachine.start(sandbox.files, mode !== "allow-all"),
      commands: new Map(),
      status: "running",
      timeout,
      createdAt: Date.now(),
      routes: [],
    };
    this.#expire(session);
    return session;
  }

  #expire(session: Session): void {
    clearTimeout(session.timer);
    const left = session.createdAt + session.timeout - Date.now();
    session.timer = setTimeout(() => void this.#stop(session), Math.max(0, left)).unref();
  }

  async #route(session: Session, ports: readonly number[]): Promise<void> {
    const kept = session.routes.filter(({ port }) => ports.includes(port));
    for (const port of ports) {
      if (kept.some((route) => route.port === port) || session.machine === undefined) continue;
      kept.push({ port, subdomain: `sb-${id()}`, url: await session.machine.gate(port) });
    }
    session.routes = kept;
  }

  /** At its worst: the credentials stay in the settings of the clone. */
  async #clone(session: Session, source: Json): Promise<void> {
    const asked = new URL(String(source["url"]));
    const url = new URL(asked.pathname, this.hosts.get(asked.origin) ?? asked.origin);
    if (source["password"] !== undefined) {
      url.username = String(source["username"]);
      url.password = String(source["password"]);
    }
    const run = session.machine?.run({ command: "git", args: ["clone", "--quiet", url.href, "."] });
    let said = "";
    run?.child.stderr?.on("data", (piece) => {
      said += String(piece);
    });
    if ((await run?.exit) !== 0) throw new Refusal(400, "bad_request", `The repository cannot be cloned: ${said}`);
  }

  #session(sid: string | undefined): Session {
    const found = [...this.#sandboxes.values()].find(({ session }) => session?.id === sid)?.session;
    if (found === undefined) throw new Refusal(404, "not_found", "There is no such session");
    return found;
  }

  async #inSession(
    line: string,
    session: Session,
    verb: string,
    query: URLSearchParams,
    body: Json,
    raw: Buffer,
  ): Promise<Json | Buffer> {
    if (line.startsWith("GET") && verb === "") return { session: describeSession(session), routes: session.routes };
    const { machine } = session;
    if (machine === undefined || session.status !== "running") {
      if (session.status === "stopping") throw new Refusal(422, "sandbox_stopping", "The sandbox is stopping");
      throw new Refusal(410, "sandbox_stopped", "The sandbox has stopped");
    }
    const [, cid, what] = /^cmd\/([^/]+)\/?(.*)$/.exec(verb) ?? [];
    if (cid !== undefined) return await this.#command(session, cid, what ?? "", query, body);
    switch (verb) {
      case "cmd":
        return { command: describeCommand(session, startCommand(session, machine, body)) };
      case "fs/write":
        machine.write(readArchive(raw));
        return {};
      case "fs/read": {
        const content = machine.read(String(body["path"]));
        if (content === undefined) throw new Refusal(404, "not_found", "no such file");
        return content;
      }
      case "stop":
        await this.#stop(session);
        return { session: describeSession(session) };
      case "extend-timeout":
        session.timeout += Number(body["duration"]);
        this.#expire(session);
        return { session: describeSession(session) };
      case "network-policy":
        return { session: describeSession(session) };
      case "snapshot": {
        await this.#stop(session);
        const files = copyFiles(machine.files);
        const snapshot = { id: `snap_${id()}`, files, sessionId: session.id, createdAt: Date.now() };
        this.#snapshots.set(snapshot.id, snapshot);
        return { snapshot: describeSnapshot(snapshot), session: describeSession(session) };
      }
      default:
        throw new Refusal(404, "not_found", `unknown ${line}`);
    }
  }

  async #command(session: Session, cid: string, what: string, query: URLSearchParams, body: Json): Promise<Json> {
    const command = session.commands.get(cid);
    if (command === undefined) throw new Refusal(404, "not_found", "There is no such command");
    if (what === "kill") command.run.kill(Number(body["signal"]));
    if (query.get("wait") === "true") await command.ended;
    return { command: describeCommand(session, command) };
  }

  #snapshot(line: string, snapshotId: string): Json {
    const snapshot = this.#snapshots.get(snapshotId);
    if (snapshot === undefined) throw new Refusal(404, "not_found", "There is no such snapshot");
    if (line.startsWith("DELETE")) {
      this.#snapshots.delete(snapshotId);
      removeFiles(snapshot.files);
    }
    return { snapshot: describeSnapshot(snapshot) };
  }

  #logs(session: Session, cid: string, response: ServerResponse, fault: Fault | undefined): void {
    const command = session.commands.get(cid);
    if (session.status !== "running") throw new Refusal(410, "sandbox_stopped", "The sandbox has stopped");
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

  async #stop(session: Session): Promise<void> {
    clearTimeout(session.timer);
    if (session.machine === undefined) return;
    session.status = "stopping";
    const { machine } = session;
    for (const command of session.commands.values()) for (const tell of command.watchers) tell();
    session.machine = undefined;
    await machine.stop();
    session.status = "stopped";
    const sandbox = this.#sandboxes.get(session.sandbox);
    if (sandbox?.persistent === true) {
      if (sandbox.currentSnapshotId !== undefined) this.#forget(sandbox.currentSnapshotId);
      sandbox.currentSnapshotId = `snap_${id()}`;
      const snapshot = { id: sandbox.currentSnapshotId, files: copyFiles(sandbox.files), sessionId: session.id };
      this.#snapshots.set(snapshot.id, { ...snapshot, createdAt: Date.now() });
    }
  }

  #forget(snapshotId: string): void {
    const snapshot = this.#snapshots.get(snapshotId);
    if (snapshot !== undefined) removeFiles(snapshot.files);
    this.#snapshots.delete(snapshotId);
  }
}

function startCommand(session: Session, machine: FakeMachine, body: Json): Command {
  const order = { ...body, command: String(body["command"]), args: (body["args"] as string[] | undefined) ?? [] };
  const run = machine.run(order as Parameters<FakeMachine["run"]>[0]);
  const lines: Command["lines"] = [];
  const watchers = new Set<() => void>();
  const tell = (): void => {
    for (const watcher of [...watchers]) watcher();
  };
  for (const stream of ["stdout", "stderr"] as const) {
    run.child[stream]?.setEncoding("utf8");
    run.child[stream]?.on("data", (data: string) => {
      lines.push({ stream, data });
      tell();
    });
  }
  const command: Command = {
    id: `cmd_${id()}`,
    order,
    run,
    lines,
    watchers,
    startedAt: Date.now(),
    exitCode: null,
    ended: once(run.child, "close").then(async () => {
      command.exitCode = await run.exit;
      tell();
    }),
  };
  session.commands.set(command.id, command);
  return command;
}

function id(): string {
  return randomBytes(8).toString("hex");
}

function describe(sandbox: StoredSandbox): Json {
  const { name, persistent, session, currentSnapshotId } = sandbox;
  const at = { createdAt: session.createdAt, updatedAt: session.createdAt };
  return { name, persistent, ...at, currentSessionId: session.id, status: session.status, currentSnapshotId };
}

function describeSession(session: Session): Json {
  const { id: sessionId, status, timeout, createdAt, cwd } = session;
  const at = { requestedAt: createdAt, createdAt, updatedAt: createdAt, startedAt: createdAt };
  return { id: sessionId, memory: 4096, vcpus: 2, region: "iad1", timeout, status, ...at, cwd };
}

function describeCommand(session: Session, command: Command): Json {
  const { order, exitCode, startedAt } = command;
  const cwd = order["cwd"] ?? session.cwd;
  return {
    id: command.id,
    name: order["command"],
    args: order["args"],
    cwd,
    sessionId: session.id,
    exitCode,
    startedAt,
  };
}

function describeSnapshot(snapshot: { id: string; sessionId: string; createdAt: number }): Json {
  const { id: snapshotId, sessionId, createdAt } = snapshot;
  const rest = { region: "iad1", status: "created", sizeBytes: 1, createdAt, updatedAt: createdAt };
  return { id: snapshotId, sourceSessionId: sessionId, ...rest };
}

function answerOf(sandbox: StoredSandbox): Json {
  const { session } = sandbox;
  return { sandbox: describe(sandbox), session: describeSession(session), routes: session.routes };
}

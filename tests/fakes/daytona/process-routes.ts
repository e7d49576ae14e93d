import { setTimeout as sleep } from "node:timers/promises";
import type { Habits } from "./habits.js";
import { HOME, type Machine } from "./machine.js";
import { type Exchange, json, objectOf, Refusal, textOf } from "./reply.js";
import { Session, type SessionCommand } from "./session.js";
import type { WebSocketPeer } from "./web-socket.js";

/** Commands and sessions of one sandbox. */
export class ProcessRoutes {
  readonly #machine: Machine;
  readonly #habits: Habits;
  readonly sessions: Map<string, Session> = new Map();
  readonly #followers = new Set<WebSocketPeer>();

  constructor(machine: Machine, habits: Habits) {
    this.#machine = machine;
    this.#habits = habits;
  }

  async handle({ method, path, request, response }: Exchange): Promise<boolean> {
    const [, , first, id = "", second, command = "", last] = path.split("/");
    if (path === "/process/execute" && method === "POST") {
      json(response, 200, await this.#execute(await objectOf(request)));
    } else if (first !== "session") return false;
    else if (id === "" && method === "POST") {
      const sessionId = textOf(await objectOf(request), "sessionId");
      if (this.sessions.has(sessionId)) throw new Refusal(409, "session already exists", "CONFLICT");
      this.sessions.set(sessionId, new Session(this.#machine, sessionId, this.#habits));
      json(response, 201);
    } else if (id === "" && method === "GET") {
      json(response, 200, [...this.sessions.values()].map(describe));
    } else if (second === undefined && method === "GET") json(response, 200, describe(this.#session(id)));
    else if (second === undefined && method === "DELETE") {
      await this.#session(id).remove();
      this.sessions.delete(id);
      json(response, 204);
    } else if (second === "exec" && method === "POST") {
      await this.#run(this.#session(id), await objectOf(request), response);
    } else if (second === "command" && last === undefined && method === "GET") {
      const found = this.#session(id).find(command);
      json(response, 200, { id: found.id, command: found.command, exitCode: found.exitCode });
    } else if (last === "logs" && method === "GET") this.#sendLog(this.#session(id).find(command), request, response);
    else if (last === "input" && method === "POST") {
      const { data } = await objectOf(request);
      await this.#session(id).input(command, String(data ?? ""), this.#habits.echoInput);
      json(response, 204);
    } else return false;
    return true;
  }

  /** Gives what sends a log as it grows. Which one is found out before the socket is taken. */
  follower(path: string, query: URLSearchParams): (peer: WebSocketPeer) => void {
    const [, kind, part, id = "", second, commandId = "", last] = path.split("/");
    if (`${kind} ${part} ${second} ${last}` !== "process session command logs" || query.get("follow") !== "true") {
      throw new Refusal(404, "page not found");
    }
    const command = this.#session(id).find(commandId);
    return (peer) => this.#follow(command, peer);
  }

  /** Clients that are older than the two streams get them as one text. */
  #sendLog(command: SessionCommand, request: Exchange["request"], response: Exchange["response"]): void {
    const [, minor = 0] = String(request.headers["x-daytona-sdk-version"] ?? "0.0")
      .split(".")
      .map(Number);
    const log = command.log.read();
    if (minor >= 167) json(response, 200, log);
    else response.writeHead(200, { "Content-Type": "text/plain" }).end(log.output);
  }

  /** Sends a log as it grows, in small frames, from its beginning. */
  #follow(command: SessionCommand, peer: WebSocketPeer): void {
    let left = this.#habits.followCutAfter ?? Number.POSITIVE_INFINITY;
    const stop = command.log.follow((chunk) => {
      for (let at = 0; at < chunk.length && left > 0; at += this.#habits.frameBytes) {
        const part = chunk.subarray(at, at + Math.min(this.#habits.frameBytes, left));
        peer.send(part);
        left -= part.length;
      }
      if (left <= 0) setImmediate(() => (this.#habits.followCutRudely ? peer.drop() : peer.close(1000)));
    });
    this.#followers.add(peer);
    peer.onClose = () => {
      stop();
      this.#followers.delete(peer);
    };
    void command.ended.then(() => sleep(this.#habits.lingerMs)).then(() => peer.close(1000));
  }

  /** Cuts every socket on which a log is followed. */
  cutFollowers(): void {
    for (const peer of this.#followers) peer.drop();
  }

  #session(id: string): Session {
    const session = this.sessions.get(id);
    if (session === undefined) throw new Refusal(404, "session not found", "NOT_FOUND");
    return session;
  }

  async #run(session: Session, body: Record<string, unknown>, response: Exchange["response"]): Promise<void> {
    const isAsync = body["runAsync"] === true;
    const command = session.run(textOf(body, "command"), isAsync);
    if (isAsync) {
      json(response, 202, { cmdId: command.id, output: null, stdout: null, stderr: null, exitCode: null });
      return;
    }
    await command.ended;
    json(response, 200, { cmdId: command.id, ...command.log.read(), exitCode: command.exitCode });
  }

  async #execute(body: Record<string, unknown>): Promise<{ exitCode: number; result: string }> {
    const seconds = body["timeout"] ?? 0;
    if (!Number.isInteger(seconds) || (seconds as number) < 0) throw new Refusal(400, "timeout must be a whole number");
    const envs = Object.keys((body["envs"] ?? {}) as object);
    const wrong = envs.find((name) => !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name));
    if (wrong !== undefined) throw new Refusal(400, `invalid environment variable name: ${wrong}`);
    const cwd = typeof body["cwd"] === "string" ? body["cwd"] : HOME;
    const script = `cd "$0" 2>&1 || exit 255\n${textOf(body, "command")}`;
    const child = this.#machine.start(["bash", "-c", script, cwd], body["envs"] as Record<string, string> | undefined);
    let result = "";
    const add = (chunk: Buffer): void => {
      result += chunk.toString("utf8");
    };
    child.stdout?.on("data", add);
    child.stderr?.on("data", add);
    child.stdin?.end();
    let timedOut = false;
    const timer =
      seconds === 0
        ? undefined
        : setTimeout(
            () => {
              timedOut = true;
              child.kill("SIGKILL");
            },
            (seconds as number) * 1000,
          );
    const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
    clearTimeout(timer);
    if (timedOut) throw new Refusal(408, "command execution timeout", "PROCESS_EXECUTION_TIMEOUT");
    return { exitCode: code === null || code > 128 ? -1 : code, result };
  }
}

function describe(session: Session): unknown {
  const commands = [...session.commands.values()].map(({ id, command, exitCode }) => ({ id, command, exitCode }));
  return { sessionId: session.id, commands };
}

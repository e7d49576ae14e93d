import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { type ModelRequest, type ModelServer, startModelServer, type Turn } from "../../agents/model-server.js";
import type { Bench } from "../cli.js";
import type { Dialect, Heard, RealClient, Wish } from "./real-clients.js";

const LONGEST = 120_000;

/** What the model does: it wishes for one call after the other, and sees what comes of each. */
export type Conversation = AsyncGenerator<Wish, void, Heard>;

/**
 * Starts a program with a model that has this conversation, and resolves when the program has ended. Fails if that was too early, or if it asked
 * the model for anything else.
 */
export async function converse(
  client: RealClient,
  { env, project }: { env: Bench["env"]; project: string },
  conversation: Conversation,
): Promise<void> {
  await using model = await startModelServer();
  const dialect = client.speak(model.port);
  const [program = "", ...args] = dialect.command;
  const child = spawn(program, args, { cwd: project, env: { ...env, ...dialect.env } });
  const talk = new Talk(dialect, child, conversation);
  model.play((request) => talk.answer(request));
  const timer = setTimeout(() => child.kill("SIGKILL"), LONGEST);
  const output = await talk.ended;
  clearTimeout(timer);
  talk.assertDone(`${client.title} ended too early: ${output.slice(-2_000)}`);
  assertNoFaults(model);
}

function assertNoFaults({ faults }: ModelServer): void {
  if (faults.length > 0) throw new Error(faults.join("\n"));
}

class Talk {
  readonly #dialect: Dialect;
  readonly #child: ChildProcess;
  readonly #conversation: Conversation;
  /** Everything that the program printed, once it has ended. */
  readonly ended: Promise<string>;
  #failure: unknown;
  #isOver = false;

  constructor(dialect: Dialect, child: ChildProcess, conversation: Conversation) {
    this.#dialect = dialect;
    this.#child = child;
    this.#conversation = conversation;
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on("data", (chunk: Buffer) => {
        output += chunk.toString("utf8");
      });
    }
    this.ended = new Promise((resolve) => child.once("close", () => resolve(output)));
    child.stdin?.on("error", () => undefined);
    if (child.stdout !== null) createInterface(child.stdout).on("line", (line) => this.#take(line));
    this.#write(dialect.begin());
  }

  /** What the model says next. */
  async answer(request: ModelRequest): Promise<Turn> {
    try {
      const prepared = await this.#dialect.prepare(request);
      if (prepared !== undefined) return prepared;
      const { value, done } = await this.#conversation.next(this.#dialect.heard(request));
      if (done !== true) {
        void this.#cut(value);
        return this.#dialect.turn(value);
      }
    } catch (error) {
      this.#failure = error;
    }
    this.#isOver = true;
    return { text: "it is done" };
  }

  assertDone(message: string): void {
    if (this.#failure !== undefined) throw this.#failure;
    if (!this.#isOver) throw new Error(message);
  }

  async #cut({ cutWhen }: Wish): Promise<void> {
    const order = cutWhen === undefined ? undefined : this.#dialect.cancel();
    if (order === undefined) return;
    await cutWhen?.();
    this.#write(order);
  }

  #take(line: string): void {
    let parsed: Record<string, unknown>;
    try {
      parsed = JSON.parse(line) as Record<string, unknown>;
    } catch {
      return;
    }
    const answer = this.#dialect.onLine(parsed, this.#isOver);
    if (answer !== undefined) this.#write(answer);
  }

  #write(text: string | null): void {
    if (text === null) this.#child.stdin?.end();
    else this.#child.stdin?.write(`${text}\n`);
  }
}

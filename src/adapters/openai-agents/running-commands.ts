import { StringDecoder } from "node:string_decoder";
import { setTimeout as sleep } from "node:timers/promises";
import type { ExecCommandArgs, SandboxExecResult, WriteStdinArgs } from "@openai/agents-core/sandbox";
import type { Sandbox } from "../../../contracts/sandbox.js";
import type { ProcessHandle, SandboxProcess, SpawnOptions } from "../../../contracts/types.js";
import { internal } from "./load-agents.js";

const EXEC_YIELD = 10_000;
const INPUT_YIELD = 250;
/** Ctrl-C, which only a terminal turns into a signal by itself. */
const INTERRUPT = "\u0003";

/** Where the next read goes on, and the start of a character that is not whole yet. */
interface Follower {
  cursor: number;
  readonly decoder: StringDecoder;
}

/** A command that runs, or has ended and was not read to its end. */
interface RunningCommand {
  readonly process: SandboxProcess;
  readonly handle: ProcessHandle;
  readonly isTerminal: boolean;
  readonly input: WritableStreamDefaultWriter<Uint8Array> | undefined;
  readonly followers: Readonly<Record<"output" | "stdout" | "stderr", Follower>>;
}

/** The commands of a session. One that does not end in time goes on, under a number by which the model reads it and writes to it. */
export class RunningCommands {
  readonly #sandbox: Sandbox;
  readonly #running = new Map<number, RunningCommand>();
  #lastNumber = 0;

  constructor(sandbox: Sandbox) {
    this.#sandbox = sandbox;
  }

  /** Starts a command and waits for its end, but not longer than it may. */
  async start(options: SpawnOptions, args: ExecCommandArgs): Promise<SandboxExecResult> {
    const startedAt = Date.now();
    const process = await this.#sandbox.spawn({ ...options, background: true });
    const handle = await this.#sandbox.process(process.id);
    const command: RunningCommand = {
      process,
      handle,
      isTerminal: options.pty !== undefined,
      input: process.stdin?.getWriter(),
      followers: { output: createFollower(), stdout: createFollower(), stderr: createFollower() },
    };
    const result = await this.#yield(command, startedAt, args.yieldTimeMs ?? EXEC_YIELD, args.maxOutputTokens);
    if (result.exitCode !== undefined) return result;
    this.#lastNumber += 1;
    this.#running.set(this.#lastNumber, command);
    return { ...result, sessionId: this.#lastNumber };
  }

  /** Writes to a command that runs, and returns what it has written since it was last read. Undefined if no command has that number. */
  async write({
    sessionId,
    chars = "",
    yieldTimeMs,
    maxOutputTokens,
  }: WriteStdinArgs): Promise<SandboxExecResult | undefined> {
    const command = this.#running.get(sessionId);
    if (command === undefined) return undefined;
    const startedAt = Date.now();
    const isInterrupted = !command.isTerminal && chars.includes(INTERRUPT);
    if (isInterrupted) await command.process.kill("SIGINT");
    const text = command.isTerminal ? chars : chars.replaceAll(INTERRUPT, "");
    // A command that has ended takes no more input; how it ended is the answer.
    if (text !== "") await command.input?.write(Buffer.from(text)).catch(() => undefined);
    const result = await this.#yield(command, startedAt, yieldTimeMs ?? INPUT_YIELD, maxOutputTokens);
    if (result.exitCode === undefined) return { ...result, sessionId };
    this.#running.delete(sessionId);
    return result;
  }

  /** Kills everything that runs. */
  async stop(): Promise<void> {
    const commands = [...this.#running.values()];
    this.#running.clear();
    await Promise.all(commands.map(async ({ process }) => await process.kill("SIGKILL").catch(() => undefined)));
  }

  async #yield(
    command: RunningCommand,
    startedAt: number,
    wait: number,
    maxOutputTokens: number | undefined,
  ): Promise<SandboxExecResult> {
    const exit = await withinTime(command.process.wait(), wait);
    const read = async (follower: Follower, stream?: "stdout" | "stderr"): Promise<string> =>
      await readNew(command.handle, follower, exit !== undefined, stream);
    const { output, stdout, stderr } = command.followers;
    const { text, originalTokenCount } = internal.truncateOutput(await read(output), maxOutputTokens);
    return {
      output: text,
      stdout: await read(stdout, "stdout"),
      stderr: await read(stderr, "stderr"),
      wallTimeSeconds: internal.elapsedSeconds(startedAt),
      ...(exit !== undefined && { exitCode: exit.exitCode }),
      ...(originalTokenCount !== undefined && { originalTokenCount }),
    };
  }
}

function createFollower(): Follower {
  return { cursor: 0, decoder: new StringDecoder() };
}

/** The text that came since the last read. What was overwritten meanwhile is counted in front of it, in the SDK's words. */
async function readNew(
  handle: ProcessHandle,
  follower: Follower,
  isLast: boolean,
  stream?: "stdout" | "stderr",
): Promise<string> {
  const { data, cursor, missed } = await handle.read({ cursor: follower.cursor, ...(stream && { stream }) });
  follower.cursor = cursor;
  const text = follower.decoder.write(Buffer.from(data)) + (isLast ? follower.decoder.end() : "");
  return missed === 0 ? text : `[...${missed} characters truncated from process output...]\n${text}`;
}

/** The result of the work, or undefined if it is not there in time. */
async function withinTime<T>(work: Promise<T>, milliseconds: number): Promise<T | undefined> {
  const timer = new AbortController();
  try {
    return await Promise.race([work, sleep(milliseconds, undefined, { signal: timer.signal })]);
  } finally {
    timer.abort();
  }
}

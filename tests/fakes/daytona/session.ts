import type { ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import { closeSync, constants, mkdirSync, openSync, writeFileSync, writeSync } from "node:fs";
import { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { CommandLog } from "./command-log.js";
import type { Habits } from "./habits.js";
import type { Machine } from "./machine.js";
import { Refusal } from "./reply.js";

/** A command of a session. The exit code is there once both streams have ended. */
export interface SessionCommand {
  readonly id: string;
  readonly command: string;
  readonly log: CommandLog;
  readonly isAsync: boolean;
  exitCode: number | undefined;
  readonly ended: Promise<void>;
}

/** What the session itself keeps of a command. */
export interface Running extends SessionCommand {
  shellCode: number | undefined;
  openStreams: number;
  input: number | undefined;
  end(): void;
}

/**
 * One shell that commands are read into, one after the other.
 *
 * They are sourced, not started: `exit` in one of them is the end of the shell, and then no exit code is ever written.
 */
export class Session {
  readonly id: string;
  readonly commands: Map<string, Running> = new Map();
  readonly #machine: Machine;
  readonly #habits: Habits;
  readonly #shell: ChildProcess;
  readonly #gone: Promise<void>;
  #heard = "";
  #dead = false;

  constructor(machine: Machine, id: string, habits: Habits) {
    this.id = id;
    this.#machine = machine;
    this.#habits = habits;
    this.#shell = machine.start(["bash", "--noprofile", "--norc"]);
    this.#gone = new Promise((resolve) => this.#shell.once("close", () => resolve()));
    this.#shell.once("exit", () => this.#die());
    this.#shell.stdout?.on("data", (chunk: Buffer) => this.#hear(chunk.toString("utf8")));
  }

  /** Hands a command to the shell. */
  run(command: string, isAsync: boolean): SessionCommand {
    if (this.#dead) throw new Refusal(500, "failed to write command: write |1: broken pipe");
    const id = randomUUID();
    const place = `/run/daemon/${this.id}/${id}`;
    const folder = this.#machine.hostPath(place);
    mkdirSync(folder, { recursive: true });
    writeFileSync(`${folder}/cmd.sh`, command);
    let end = (): void => undefined;
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    const log = new CommandLog(this.#habits.changesOutput);
    const running: Running = {
      ...{ id, command, log, isAsync, ended, end },
      ...{ exitCode: undefined, shellCode: undefined, openStreams: 2, input: undefined },
    };
    this.commands.set(id, running);
    const input = isAsync ? `${place}/in` : "/dev/null";
    this.#shell.stdin?.write(
      `mkfifo ${place}/in ${place}/out ${place}/err && echo ready ${id}\n` +
        `${this.#habits.sourcesCommands ? `{ . ${place}/cmd.sh; }` : `( . ${place}/cmd.sh )`} < ${input} > ${place}/out 2> ${place}/err; echo "code ${id} $?"\n`,
    );
    return running;
  }

  /**
   * Writes to the standard input of a command that was started to go on. A pipe that is full makes the daemon wait, and requests at the same time
   * then mix.
   */
  async input(id: string, data: string, echo: boolean): Promise<void> {
    const command = this.find(id);
    const text = data.endsWith("\n") ? data : `${data}\n`;
    for (let rest = Buffer.from(text); rest.length > 0; ) {
      if (command.exitCode !== undefined) throw new Refusal(410, "command has already completed", "GONE");
      if (this.#dead) throw new Refusal(410, "session process has exited", "GONE");
      if (command.input === undefined) throw new Refusal(500, "failed to open input pipe");
      try {
        rest = rest.subarray(writeSync(command.input, rest));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EAGAIN") throw error;
        await sleep(1);
      }
    }
    if (echo) command.log.push("stdout", Buffer.from(text));
  }

  find(id: string): Running {
    const command = this.commands.get(id);
    if (command === undefined) throw new Refusal(404, "command not found", "NOT_FOUND");
    return command;
  }

  /** Ends the shell and all it started: asked first, then not. */
  async remove(): Promise<void> {
    this.#shell.stdin?.end();
    this.#shell.kill("SIGTERM");
    await Promise.race([this.#gone, sleep(50)]);
    this.#shell.kill("SIGKILL");
    await this.#gone;
  }

  #hear(text: string): void {
    this.#heard += text;
    const lines = this.#heard.split("\n");
    this.#heard = lines.pop() ?? "";
    for (const line of lines) {
      const [word, id = "", code] = line.split(" ");
      const command = this.commands.get(id);
      if (command === undefined) continue;
      if (word === "ready") this.#open(command);
      if (word !== "code") continue;
      command.shellCode = Number(code);
      this.#settle(command);
    }
  }

  #open(command: Running): void {
    const folder = this.#machine.hostPath(`/run/daemon/${this.id}/${command.id}`);
    if (command.isAsync) command.input = openSync(`${folder}/in`, constants.O_RDWR | constants.O_NONBLOCK);
    for (const [name, stream] of [
      ["out", "stdout"],
      ["err", "stderr"],
    ] as const) {
      const fd = openSync(`${folder}/${name}`, constants.O_RDONLY | constants.O_NONBLOCK);
      const socket = new Socket({ fd, readable: true, writable: false });
      socket.on("data", (chunk: Buffer) => command.log.push(stream, chunk));
      socket.on("error", () => undefined);
      socket.on("close", () => {
        command.log.finish(stream);
        command.openStreams -= 1;
        this.#settle(command);
      });
    }
  }

  #settle(command: Running): void {
    if (command.openStreams > 0 || command.shellCode === undefined || command.exitCode !== undefined) return;
    command.exitCode = command.shellCode;
    this.#close(command);
    command.end();
  }

  #close(command: Running): void {
    if (command.input !== undefined) closeSync(command.input);
    command.input = undefined;
  }

  #die(): void {
    this.#dead = true;
    for (const command of this.commands.values()) this.#close(command);
  }
}

import { setTimeout as delay } from "node:timers/promises";
import { SandboxError } from "../../../contracts/errors.js";
import type { NetworkPolicy, ProcessExit, ProcessHandle, SandboxProcess } from "../../../contracts/types.js";
import { networkHint, saysUnresolved } from "../../sandbox/host.js";
import type { Sandbox } from "../../sandbox/types.js";
import * as is from "../../util/schema.js";
import type { AnswerStyle } from "../answer.js";
import { LONGEST_WAIT } from "../limits.js";
import { endOf, exitFields, FollowedOutput, PROCESS_FIELDS } from "../output.js";
import { joinStreams, type ShownSoFar } from "../read-output.js";
import { defineTool, type Tool, type ToolAnswer, type ToolCall } from "../tool.js";

const DEFAULT_TIMEOUT = 600_000;
const LONGEST_TIMEOUT = 86_400_000;

interface ExecInput {
  command?: string;
  argv?: readonly string[];
  cwd?: string;
  env?: Readonly<Record<string, string>>;
  stdin?: string;
  interactive?: boolean;
  timeout_ms?: number;
  yield_ms?: number;
}

const input: is.Schema<ExecInput> = is.and(
  is.object<ExecInput>({
    command: is.noted(is.text, { description: "Script for sh. Give this or argv." }),
    argv: is.noted(is.list(is.argument, { minItems: 1 }), {
      description: "Program and arguments, run without a shell. Give this or command.",
    }),
    cwd: is.noted(is.path, { description: "Directory to start in; relative to the work directory." }),
    env: is.noted(is.env, { description: "More environment variables." }),
    stdin: is.noted(is.string(), { description: "Standard input." }),
    interactive: is.noted(is.flag, {
      description: "Keep standard input open for process_write. Default false: closed after stdin.",
    }),
    timeout_ms: is.noted(is.whole(1, LONGEST_TIMEOUT), {
      description: "Kill it after this time.",
      default: DEFAULT_TIMEOUT,
    }),
    yield_ms: is.noted(is.whole(0, LONGEST_WAIT), {
      description: "Answer after this time even if it still runs.",
      default: LONGEST_WAIT,
    }),
  }),
  ({ command, argv }) => {
    if ((command === undefined) === (argv === undefined)) {
      throw new SandboxError("invalid_argument", "exec takes either command or argv", {
        hint: 'for example {"command": "npm test"} or {"argv": ["npm", "test"]}',
      });
    }
  },
);

/** What the tools that start and follow commands share. */
export interface CommandParts {
  readonly style: AnswerStyle;
  readonly shown: ShownSoFar;
  /** The rule that the sandboxes have; undefined: they have their own. */
  readonly network: NetworkPolicy | undefined;
}

/** The tool `exec`: runs a command and answers when it has ended, or when it has run for a while. */
export function execTool(setting: CommandParts): Tool {
  return defineTool<ExecInput>({
    name: "exec",
    title: "Run a command",
    description:
      "Run a command in the sandbox. The answer starts with its exit code; a non-zero one is a result. A command that is still running after " +
      "yield_ms goes on: the answer then has a process_id for process_read, process_write and process_kill. Start servers this way.",
    input,
    output: EXEC_FIELDS,
    isText: true,
    hints: {
      readOnly: false,
      destructive: true,
      idempotent: false,
      openWorld: setting.network !== "none",
    },
    usesSandbox: true,
    run: (given, call) => run(given, call, setting),
  });
}

const EXEC_FIELDS: is.JsonSchema = {
  type: "object",
  required: ["process_id", "running", "stdout", "stderr"],
  properties: {
    ...PROCESS_FIELDS,
    truncated: { type: "object", properties: { stdout: { type: "boolean" }, stderr: { type: "boolean" } } },
    bytes: { type: "object", properties: { stdout: { type: "integer" }, stderr: { type: "integer" } } },
    hint: { type: "string" },
  },
};

async function run(given: ExecInput, call: ToolCall, setting: CommandParts): Promise<ToolAnswer> {
  const { yield_ms: yieldAfter = LONGEST_WAIT, timeout_ms: timeout = DEFAULT_TIMEOUT } = given;
  const sandbox = await call.sandbox();
  call.signal.throwIfAborted();
  const child = await start(sandbox, given, timeout);
  const handle = await sandbox.process(child.id);
  const output = new FollowedOutput(handle, setting.style);
  const kill = (): void => void handle.kill("SIGKILL").catch(() => undefined);
  call.signal.addEventListener("abort", kill, { once: true });
  if (call.signal.aborted) kill();
  const ticker = setInterval(() => call.report(output.lastLine), 1_000);
  const ended = new AbortController();
  try {
    const until = Math.max(0, Math.min(yieldAfter, call.deadline - performance.now()));
    const exit = await Promise.race([
      child.wait().then(async (result) => {
        await output.complete;
        return result;
      }),
      delay(until, undefined, { signal: ended.signal }).catch(() => undefined),
    ]);
    if (call.signal.aborted) throw new SandboxError("aborted", "The call was cancelled, and the command was killed");
    output.stop();
    // Lets the reads that were cut off put back what they held.
    await output.complete.catch(() => undefined);
    return await answer(sandbox, handle, exit, output, setting);
  } finally {
    clearInterval(ticker);
    ended.abort();
    output.stop();
    call.signal.removeEventListener("abort", kill);
  }
}

async function start(sandbox: Sandbox, given: ExecInput, timeout: number): Promise<SandboxProcess> {
  const { command, argv, cwd, env, stdin, interactive = false } = given;
  const child = await sandbox.spawn({
    argv: argv ?? ["/bin/sh", "-c", command ?? ""],
    ...(cwd !== undefined && { cwd }),
    ...(env !== undefined && { env }),
    timeout,
    background: true,
    stdin: stdin !== undefined || interactive ? "pipe" : "none",
  });
  // A command may end without reading its input, or read it late.
  if (child.stdin !== undefined) void feed(child.stdin, stdin, interactive).catch(() => undefined);
  return child;
}

async function feed(stdin: WritableStream<Uint8Array>, text: string | undefined, interactive: boolean): Promise<void> {
  const writer = stdin.getWriter();
  if (text !== undefined && text !== "") await writer.write(Buffer.from(text));
  if (interactive) writer.releaseLock();
  else await writer.close();
}

async function answer(
  sandbox: Sandbox,
  handle: ProcessHandle,
  exit: ProcessExit | undefined,
  output: FollowedOutput,
  { style, shown, network }: CommandParts,
): Promise<ToolAnswer> {
  const { stdout, stderr } = output.shown(handle.id);
  shown.set(sandbox, handle.id, { stdout: stdout.cursor, stderr: stderr.cursor });
  const first = exit === undefined ? `still running, process_id ${handle.id}` : endOf(exit);
  const usual = network ?? (sandbox.capabilities.network.includes("none") ? "none" : "full");
  const isBlocked = exit !== undefined && exit.exitCode !== 0 && saysUnresolved(`${stdout.text}\n${stderr.text}`);
  const hint = isBlocked ? networkHint(usual) : undefined;
  const text = `${first}\n${hint === undefined ? "" : `hint: ${hint}\n`}${joinStreams(stdout.text, stderr.text)}`;
  return {
    text: style.ansi ? text : text.trimEnd(),
    fields: {
      process_id: handle.id,
      ...exitFields(exit),
      stdout: stdout.text,
      stderr: stderr.text,
      truncated: { stdout: stdout.truncated, stderr: stderr.truncated },
      bytes: { stdout: stdout.bytes, stderr: stderr.bytes },
      ...(hint !== undefined && { hint }),
    },
  };
}

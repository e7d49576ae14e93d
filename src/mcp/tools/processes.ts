import { setTimeout as delay } from "node:timers/promises";
import { SandboxError } from "../../../contracts/errors.js";
import type { ProcessHandle, ProcessStream } from "../../../contracts/types.js";
import type { Sandbox } from "../../sandbox/types.js";
import * as is from "../../util/schema.js";
import { LONGEST_WAIT } from "../limits.js";
import { endOf, exitFields, noProcess, PROCESS_FIELDS } from "../output.js";
import { joinStreams, type Page, readNew, readPage } from "../read-output.js";
import { CHANGES, defineTool, READS, type Tool, type ToolAnswer } from "../tool.js";
import type { CommandParts } from "./exec.js";

/** How long after its input the output of a process is gathered. */
const AFTER_WRITE = 250;
/** How long an ended process may take to be gone after a signal. */
const AFTER_KILL = 2_000;

const processId: is.Schema<string> = is.noted(is.text, { description: "The process_id that exec returned." });

interface ReadInput {
  process_id: string;
  wait_ms?: number;
  from_byte?: number;
  stream?: ProcessStream;
}
interface WriteInput {
  process_id: string;
  data: string;
  eof?: boolean;
}
interface KillInput {
  process_id: string;
  signal?: string;
}

const OUTPUT_FIELDS: is.JsonSchema = {
  type: "object",
  required: ["process_id", "running"],
  properties: {
    ...PROCESS_FIELDS,
    output: { type: "string" },
    next_byte: { type: "integer" },
    more: { type: "boolean" },
  },
};

/** The tools for commands that `exec` has left running. */
export function processTools(setting: CommandParts): Tool[] {
  return [readTool(setting), writeTool(setting), killTool()];
}

function readTool({ style, shown }: CommandParts): Tool {
  return defineTool<ReadInput>({
    name: "process_read",
    title: "Read the output of a process",
    description:
      "Read what a process has written since you last saw its output, and whether it still runs. Also works for 10 minutes after its end. " +
      "With from_byte it reads any part that is kept: the last MiB.",
    input: is.object<ReadInput>({
      process_id: is.required(processId),
      wait_ms: is.noted(is.whole(0, LONGEST_WAIT), {
        description: "If there is nothing new, wait this long for output or the end.",
        default: 0,
      }),
      from_byte: is.noted(is.whole(0, Number.MAX_SAFE_INTEGER), {
        description: "Start at this byte of the stream, or of both streams in their order.",
      }),
      stream: is.noted(is.oneOf("stdout", "stderr"), { description: "Only this stream. Default: both." }),
    }),
    output: OUTPUT_FIELDS,
    isText: true,
    hints: READS,
    usesSandbox: true,
    async run({ process_id: id, wait_ms: wait = 0, from_byte: from, stream }, call) {
      const sandbox = await call.sandbox();
      const handle = await find(sandbox, id);
      const longest = Math.max(0, Math.min(wait, Math.floor(call.deadline - performance.now())));
      if (from !== undefined) {
        if (longest > 0)
          await handle.read({
            cursor: from,
            wait: longest,
            maxBytes: 1,
            signal: call.signal,
            ...(stream && { stream }),
          });
        const page = await readPage(handle, { cursor: from, room: style.maxOutput, ...(stream && { stream }) }, style);
        return pageAnswer(handle, page);
      }
      const cursors = shown.of(sandbox, id);
      const pages = await readNew(handle, cursors, { wait: longest, signal: call.signal }, style);
      const wanted: Streams = stream === undefined ? pages : { ...NOTHING, [stream]: pages[stream] };
      shown.set(sandbox, id, {
        stdout: wanted.stdout?.next ?? cursors.stdout,
        stderr: wanted.stderr?.next ?? cursors.stderr,
      });
      return newAnswer(handle, wanted);
    },
  });
}

/** A page of each stream that was asked for. */
type Streams = Record<ProcessStream, Page | undefined>;

const NOTHING: Streams = { stdout: undefined, stderr: undefined };

function writeTool({ style, shown }: CommandParts): Tool {
  return defineTool<WriteInput>({
    name: "process_write",
    title: "Write to a process",
    description:
      "Write to the standard input of a process that exec started with interactive: true. Answers with its output of the next 250 ms.",
    input: is.object<WriteInput>({
      process_id: is.required(processId),
      data: is.required(is.noted(is.string(), { description: "What to write; end a line with \\n." })),
      eof: is.noted(is.flag, { description: "Close its standard input afterwards.", default: false }),
    }),
    output: OUTPUT_FIELDS,
    isText: true,
    hints: CHANGES,
    usesSandbox: true,
    async run({ process_id: id, data, eof = false }, call) {
      const sandbox = await call.sandbox();
      const handle = await find(sandbox, id);
      await write(handle, data, eof);
      const options = { wait: AFTER_WRITE, signal: call.signal, settle: AFTER_WRITE };
      const pages = await readNew(handle, shown.of(sandbox, id), options, style);
      shown.set(sandbox, id, { stdout: pages.stdout.next, stderr: pages.stderr.next });
      return newAnswer(handle, pages);
    },
  });
}

async function write(handle: ProcessHandle, data: string, eof: boolean): Promise<void> {
  if (handle.state === "ended") {
    throw new SandboxError("conflict", `The process ${handle.id} has ended`, {
      retryable: false,
      hint: "process_read shows how it ended",
    });
  }
  await using attached = await handle.attach();
  if (attached.stdin === undefined) {
    throw new SandboxError("conflict", `The process ${handle.id} has no standard input`, {
      retryable: false,
      hint: "start it again with interactive: true",
    });
  }
  const writer = attached.stdin.getWriter();
  if (data !== "") await writer.write(Buffer.from(data));
  if (eof) await writer.close();
}

function killTool(): Tool {
  return defineTool<KillInput>({
    name: "process_kill",
    title: "Kill a process",
    description: "Send a signal to a process. SIGKILL, the default, ends it and everything that it started.",
    input: is.object<KillInput>({
      process_id: is.required(processId),
      signal: is.noted(is.matching(/^SIG[A-Z0-9]{2,10}$/, "the name of a signal, such as SIGTERM"), {
        description: "For example SIGTERM or SIGINT.",
        default: "SIGKILL",
      }),
    }),
    output: OUTPUT_FIELDS,
    isText: false,
    hints: { ...CHANGES, idempotent: true },
    usesSandbox: true,
    async run({ process_id: id, signal = "SIGKILL" }, call) {
      const handle = await find(await call.sandbox(), id);
      await handle.kill(signal);
      const gone = new AbortController();
      const over = handle.wait().catch(() => undefined);
      await Promise.race([over, delay(AFTER_KILL, undefined, { signal: gone.signal }).catch(() => undefined)]);
      gone.abort();
      return {
        text: stateOf(handle),
        fields: { process_id: id, ...exitFields(handle.exit, handle.state === "running") },
      };
    },
  });
}

async function find(sandbox: Sandbox, id: string): Promise<ProcessHandle> {
  return await sandbox.process(id).catch((error: unknown) => {
    throw noProcess(error, id);
  });
}

function stateOf({ id, state, exit }: ProcessHandle): string {
  if (state === "running") return `still running, process_id ${id}`;
  return exit === undefined ? "ended; how is not known" : endOf(exit);
}

function pageAnswer(handle: ProcessHandle, page: Page): ToolAnswer {
  const rest = page.isLast ? "" : `\nnext from_byte ${page.next}`;
  return {
    text: `${stateOf(handle)}${rest}\n${page.text}`.trimEnd(),
    fields: {
      process_id: handle.id,
      ...exitFields(handle.exit, handle.state === "running"),
      output: page.text,
      next_byte: page.next,
      more: page.hasMore,
    },
  };
}

function newAnswer(handle: ProcessHandle, { stdout, stderr }: Streams): ToolAnswer {
  const [out, err] = [stdout?.text ?? "", stderr?.text ?? ""];
  const more = stdout?.hasMore === true || stderr?.hasMore === true;
  const note = more ? "\nmore output is there: call process_read again" : "";
  const text = out === "" && err === "" ? "no new output" : joinStreams(out, err);
  return {
    text: `${stateOf(handle)}${note}\n${text}`.trimEnd(),
    fields: {
      process_id: handle.id,
      ...exitFields(handle.exit, handle.state === "running"),
      stdout: out,
      stderr: err,
      more,
    },
  };
}

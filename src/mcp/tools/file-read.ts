import { SandboxError } from "../../../contracts/errors.js";
import type { Sandbox } from "../../sandbox/types.js";
import { redact } from "../../util/redact.js";
import * as is from "../../util/schema.js";
import type { AnswerStyle } from "../answer.js";
import { kindOfFile } from "../file-kind.js";
import { MAX_IMAGE } from "../limits.js";
import { LineWindow } from "../line-window.js";
import { defineTool, READS, type Tool, type ToolAnswer, type ToolCall } from "../tool.js";

const DEFAULT_LINES = 2_000;
/** How much of a file is looked at for its kind. */
const SNIFFED = 8 << 10;
/** Lines of a larger file are not counted. */
const COUNTED = 64 << 20;

interface FileReadInput {
  path: string;
  start_line?: number;
  max_lines?: number;
}

/** The tool `file_read`: lines of a text, an image as an image, and what any other file is. */
export function fileReadTool(style: AnswerStyle): Tool {
  return defineTool<FileReadInput>({
    name: "file_read",
    title: "Read a file",
    description: "Read lines of a text file. Images (png, jpeg, gif, webp, up to 1 MB) come as images.",
    input: is.object<FileReadInput>({
      path: is.required(is.noted(is.path, { description: "Absolute, or relative to the work directory." })),
      start_line: is.noted(is.whole(1, Number.MAX_SAFE_INTEGER), {
        description: "The first line, from 1.",
        default: 1,
      }),
      max_lines: is.noted(is.whole(1, 100_000), { description: "At most so many lines.", default: DEFAULT_LINES }),
    }),
    output: {
      type: "object",
      required: ["path", "size"],
      properties: {
        path: { type: "string" },
        size: { type: "integer" },
        content: { type: "string" },
        start_line: { type: "integer" },
        end_line: { type: "integer" },
        total_lines: { type: "integer" },
        truncated: { type: "boolean" },
        mime_type: { type: "string" },
        data: { type: "string", description: "An image in base64." },
      },
    },
    isText: true,
    hints: READS,
    usesSandbox: true,
    run: (given, call) => read(given, call, style),
  });
}

async function read(given: FileReadInput, call: ToolCall, style: AnswerStyle): Promise<ToolAnswer> {
  const { path } = given;
  const sandbox = await call.sandbox();
  const { signal } = call;
  const size = await sizeOf(sandbox, path, signal);
  const start = await readAll(sandbox, path, { end: SNIFFED, signal });
  const kind = kindOfFile(start);
  if (kind.is === "image") {
    if (size > MAX_IMAGE) {
      return {
        text: `${path} is an image (${kind.mimeType}) of ${size} bytes; images up to ${MAX_IMAGE} bytes are shown. Make a smaller copy with a command.`,
        fields: { path, size, mime_type: kind.mimeType },
      };
    }
    const data = Buffer.from(await readAll(sandbox, path, { end: MAX_IMAGE, signal })).toString("base64");
    return {
      text: `${path}: ${kind.mimeType}, ${size} bytes`,
      fields: { path, size, mime_type: kind.mimeType, data },
      image: { data, mimeType: kind.mimeType },
    };
  }
  if (kind.is === "binary") {
    return {
      text: `${path} is a binary file (${kind.mimeType}) of ${size} bytes. Use exec to look into it, for example with od -c or a program for its format.`,
      fields: { path, size, mime_type: kind.mimeType },
    };
  }
  return await readLines(sandbox, given, size, style, signal);
}

/** The size of a regular file; anything else is refused. */
export async function sizeOf(sandbox: Sandbox, path: string, signal: AbortSignal): Promise<number> {
  const stat = await sandbox.stat(path, { follow: true, signal });
  if (stat === null) {
    throw new SandboxError("not_found", `There is no file ${path}`, { hint: "exec with ls shows what there is" });
  }
  if (stat.type === "file") return stat.size;
  throw new SandboxError(
    "not_regular_file",
    `${path} is ${stat.type === "directory" ? "a directory" : "no regular file"}`,
    {
      hint: stat.type === "directory" ? "exec with ls lists it" : "read it with a command",
    },
  );
}

async function readAll(
  sandbox: Sandbox,
  path: string,
  options: { end: number; signal: AbortSignal },
): Promise<Uint8Array> {
  const stream = await sandbox.readStream(path, options);
  const pieces: Uint8Array[] = [];
  if (stream !== null) for await (const piece of stream) pieces.push(piece);
  return Buffer.concat(pieces);
}

async function readLines(
  sandbox: Sandbox,
  { path, start_line: first = 1, max_lines: most = DEFAULT_LINES }: FileReadInput,
  size: number,
  style: AnswerStyle,
  signal: AbortSignal,
): Promise<ToolAnswer> {
  const window = new LineWindow({ first, most, room: style.maxOutput, hidden: style.hidden });
  const decoder = new TextDecoder();
  const stream = await sandbox.readStream(path, { end: COUNTED, signal });
  if (stream !== null) for await (const piece of stream) window.push(decoder.decode(piece, { stream: true }));
  window.push(decoder.decode());
  window.end();
  const { lines, count: number, wasCut } = window;
  if (first > Math.max(1, number)) {
    throw new SandboxError("invalid_argument", `start_line ${first} is after the end: ${path} has ${number} lines`, {
      hint: `use start_line ${Math.max(1, number)} or less`,
    });
  }
  const last = first + lines.length - 1;
  const isCounted = size <= COUNTED;
  const truncated = last < number || wasCut;
  const content = redact(lines.join("\n"), style.hidden);
  const total = isCounted ? `${number}` : `more than ${number}`;
  const note =
    truncated || first > 1
      ? `\n[lines ${first} to ${last} of ${total}${last < number ? `; start_line ${last + 1} continues` : ""}]`
      : `\n[${total} lines]`;
  return {
    text: number === 0 ? "[the file is empty]" : content + note,
    fields: {
      path,
      size,
      content,
      start_line: first,
      end_line: Math.max(last, 0),
      ...(isCounted && { total_lines: number }),
      truncated,
    },
  };
}

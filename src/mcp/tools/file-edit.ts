import { SandboxError } from "../../../contracts/errors.js";
import type { Sandbox } from "../../sandbox/types.js";
import { createLimit } from "../../util/limit.js";
import * as is from "../../util/schema.js";
import { type AnswerStyle, bounded } from "../answer.js";
import { type Edit, editDiff, lineOf } from "../edit-diff.js";
import { CHANGES, defineTool, type Tool, type ToolAnswer, type ToolCall } from "../tool.js";
import { sizeOf } from "./file-read.js";

const LARGEST = 16 << 20;
const SHOWN_LINES = 20;

interface FileEditInput {
  path: string;
  old: string;
  new: string;
  count?: number;
}

/** The tool `file_edit`: replaces a text that must be there as often as is said, and answers with the difference. */
export function fileEditTool(style: AnswerStyle): Tool {
  const lines = new WeakMap<Sandbox, ReturnType<typeof createLimit>>();
  return defineTool<FileEditInput>({
    name: "file_edit",
    title: "Edit a file",
    description:
      "Replace old by new in a file. old must be there exactly count times, character for character; nothing is changed otherwise. Answers with the diff.",
    input: is.object<FileEditInput>({
      path: is.required(is.noted(is.path, { description: "Absolute, or relative to the work directory." })),
      old: is.required(
        is.noted(is.string({ minLength: 1 }), {
          description: "The text to replace, with enough around it to be unique.",
        }),
      ),
      new: is.required(is.noted(is.string(), { description: "What takes its place." })),
      count: is.noted(is.whole(1, 100_000), { description: "How often old must be there.", default: 1 }),
    }),
    output: {
      type: "object",
      required: ["path", "replaced", "diff"],
      properties: { path: { type: "string" }, replaced: { type: "integer" }, diff: { type: "string" } },
    },
    isText: false,
    hints: CHANGES,
    usesSandbox: true,
    async run(given, call) {
      const sandbox = await call.sandbox();
      // Two edits of one file at the same time must not lose one of them.
      const inLine = lines.get(sandbox) ?? createLimit(1);
      lines.set(sandbox, inLine);
      return await inLine(() => edit(sandbox, given, call, style));
    },
  });
}

async function edit(
  sandbox: Sandbox,
  { path, old, new: replacement, count = 1 }: FileEditInput,
  { signal }: ToolCall,
  style: AnswerStyle,
): Promise<ToolAnswer> {
  const size = await sizeOf(sandbox, path, signal);
  if (size > LARGEST) {
    throw new SandboxError("limit_exceeded", `${path} has ${size} bytes; file_edit takes up to ${LARGEST}`, {
      hint: "edit it with a command such as sed",
    });
  }
  const before = Buffer.from((await sandbox.readBytes(path, { signal })) ?? []);
  const places = occurrencesOf(before, Buffer.from(old));
  if (places.length !== count) throw wrongCount(path, before, places, count);
  const change: Edit = { before, places, old: Buffer.from(old), replacement: Buffer.from(replacement) };
  const pieces: Buffer[] = [];
  let at = 0;
  for (const place of places) {
    pieces.push(before.subarray(at, place), change.replacement);
    at = place + change.old.length;
  }
  pieces.push(before.subarray(at));
  await sandbox.writeFile(path, Buffer.concat(pieces), { signal });
  const diff = bounded(editDiff(path, change), style);
  return { text: diff, fields: { path, replaced: places.length, diff } };
}

function occurrencesOf(text: Buffer, part: Buffer): number[] {
  const places: number[] = [];
  for (let at = text.indexOf(part); at !== -1; at = text.indexOf(part, at + part.length)) places.push(at);
  return places;
}

function wrongCount(path: string, text: Buffer, places: readonly number[], count: number): SandboxError {
  if (places.length === 0) {
    return new SandboxError("not_found", `old is not in ${path}; nothing was changed`, {
      hint: "read the file again: spaces, tabs and line ends must be the same",
    });
  }
  const lines = places.slice(0, SHOWN_LINES).map((place) => lineOf(text, place));
  const more = places.length > lines.length ? ` and ${places.length - lines.length} more` : "";
  return new SandboxError(
    "conflict",
    `old is ${places.length} times in ${path}, not ${count} (lines ${lines.join(", ")}${more}); nothing was changed`,
    { retryable: false, hint: `give more of the text around it, or count: ${places.length} to replace all` },
  );
}

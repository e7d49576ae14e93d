import { SandboxError } from "../../../contracts/errors.js";
import { countOf } from "../../util/count-of.js";
import { assertBranchName } from "../../util/git/branch-name.js";
import { endOfWholeCharacters } from "../../util/output-collector.js";
import { redact } from "../../util/redact.js";
import * as is from "../../util/schema.js";
import { defineTool, READS, type Tool } from "../tool.js";
import type { ToolParts } from "../tool-parts.js";
import { firstThatFit } from "./first-that-fit.js";

interface ChangesInput {
  from_byte?: number;
}
interface PushInput {
  branch: string;
  message?: string;
}

/** The longest word for what happened to a file, and what is around it. */
const LONGEST_STATUS = 10;

/** The tools for a repository: `changes`, and `push` if the user allows it. */
export function gitTools({ options, style }: ToolParts): Tool[] {
  const changes = defineTool<ChangesInput>({
    name: "changes",
    title: "Show the changes",
    description: "Show what has changed in the work directory since the sandbox was made, as a patch.",
    input: is.object<ChangesInput>({
      from_byte: is.noted(is.whole(0, Number.MAX_SAFE_INTEGER), {
        description: "Start at this byte of a patch that is too long for one answer.",
        default: 0,
      }),
    }),
    output: {
      type: "object",
      required: ["patch", "files"],
      properties: {
        patch: { type: "string" },
        files: {
          type: "array",
          items: { type: "object", properties: { path: { type: "string" }, status: { type: "string" } } },
        },
        more_files: { type: "integer" },
        next_byte: { type: "integer" },
      },
    },
    isText: false,
    hints: READS,
    usesSandbox: true,
    async run({ from_byte: from = 0 }, call) {
      const { patch, files } = await (await call.sandbox()).changes();
      const room = Math.floor(style.maxOutput / 3);
      const shown = from > 0 ? [] : firstThatFit(files, ({ path }) => Buffer.byteLength(path) + LONGEST_STATUS, room);
      const more = from > 0 ? 0 : files.length - shown.length;
      const list = shown.map(({ path, status }) => `${status} ${redact(path, style.hidden)}`);
      const page = pageOf(Buffer.from(redact(patch, style.hidden)), from, style.maxOutput - room);
      const head = [...list, ...(more > 0 ? [`[${more} more files]`] : [])].join("\n");
      const rest = page.next === undefined ? "" : `\n[the patch goes on: from_byte ${page.next} continues]`;
      return {
        text: files.length === 0 ? "nothing has changed" : `${head}${head === "" ? "" : "\n\n"}${page.text}${rest}`,
        fields: {
          patch: page.text,
          files: shown,
          ...(more > 0 && { more_files: more }),
          ...(page.next !== undefined && { next_byte: page.next }),
        },
      };
    },
  });
  const { push } = options;
  if (push === undefined) return [changes];
  return [
    changes,
    defineTool<PushInput>({
      name: "push",
      title: "Push the changes",
      description:
        "Push the files of the work directory to a branch of the repository's remote. The user is asked first.",
      input: is.object<PushInput>({
        branch: is.required(is.noted(is.text, { description: "The branch to push to." })),
        message: is.noted(is.text, { description: "Message of the commit with what is not committed yet." }),
      }),
      output: {
        type: "object",
        required: ["branch", "pushed"],
        properties: { branch: { type: "string" }, pushed: { type: "boolean" }, error: { type: "string" } },
      },
      isText: false,
      hints: { readOnly: false, destructive: true, idempotent: false, openWorld: true },
      usesSandbox: true,
      async run({ branch, message }, call) {
        const sandbox = await call.sandbox();
        if (!sandbox.capabilities.git) {
          throw new SandboxError("unsupported", "The sandbox has no repository, so there is nothing to push", {
            hint: "the user starts the server with --repo",
          });
        }
        assertBranchName(branch);
        if (call.consent === "no") {
          throw new SandboxError("permission_denied", `The user refused to push to ${branch}`);
        }
        if (call.consent === undefined && call.canAsk) {
          const files = (await sandbox.changes()).files.length;
          return { question: `Push ${countOf(files, "changed file")} to the branch ${branch}?` };
        }
        const { token, server } = push;
        const result = await sandbox.pushBranch(branch, token, {
          ...(server !== undefined && { server }),
          ...(message !== undefined && { message }),
        });
        if (!result.pushed) {
          throw new SandboxError(
            "conflict",
            `Could not push ${branch}: ${result.error ?? "the remote gave no reason"}`,
            {
              retryable: false,
            },
          );
        }
        return { text: `pushed ${branch}`, fields: { branch, pushed: true } };
      },
    }),
  ];
}

/** A part of a patch, up to a whole character, and where the next one starts if there is one. */
function pageOf(patch: Buffer, from: number, room: number): { text: string; next: number | undefined } {
  if (from > patch.length) {
    throw new SandboxError(
      "invalid_argument",
      `from_byte ${from} is after the end: the patch has ${patch.length} bytes`,
    );
  }
  const part = patch.subarray(from, from + room);
  const isLast = from + part.length === patch.length;
  const length = isLast ? part.length : endOfWholeCharacters(part);
  return { text: part.toString("utf8", 0, length), next: isLast ? undefined : from + length };
}

import { SandboxError } from "../../../contracts/errors.js";
import * as is from "../../util/schema.js";
import { bounded } from "../answer.js";
import { defineTool, READS, type Tool } from "../tool.js";
import type { ToolParts } from "../tool-parts.js";

interface PushInput {
  branch: string;
  message?: string;
}

/** The tools for a repository: `changes`, and `push` if the user allows it. */
export function gitTools({ options, style }: ToolParts): Tool[] {
  const changes = defineTool<object>({
    name: "changes",
    title: "Show the changes",
    description: "Show what has changed in the work directory since the sandbox was made, as a patch.",
    input: is.object<object>({}),
    output: {
      type: "object",
      required: ["patch", "files"],
      properties: {
        patch: { type: "string" },
        files: {
          type: "array",
          items: { type: "object", properties: { path: { type: "string" }, status: { type: "string" } } },
        },
      },
    },
    isText: false,
    hints: READS,
    usesSandbox: true,
    async run(_, call) {
      const { patch, files } = await (await call.sandbox()).changes();
      const list = files.map(({ path, status }) => `${status} ${path}`).join("\n");
      const shown = bounded(patch, style);
      return {
        text: files.length === 0 ? "nothing has changed" : `${list}\n\n${shown}`,
        fields: { patch: shown, files },
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
        if (call.consent === "no") {
          throw new SandboxError("permission_denied", `The user refused to push to ${branch}`);
        }
        if (call.consent === undefined && call.canAsk) {
          const files = (await sandbox.changes()).files.length;
          return { question: `Push ${files} changed file${files === 1 ? "" : "s"} to the branch ${branch}?` };
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

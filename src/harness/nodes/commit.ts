import { defined } from "../../util/defined.js";
import * as is from "../../util/schema.js";
import { commitAll, NOBODY } from "../commit-all.js";
import type { NodeBase, NodeSpecBase, Text } from "../node-types.js";
import { fields } from "../schema.js";
import { toOutcome } from "./failure.js";
import type { NodeKindModule } from "./kind.js";
import type { NodeOutcome, NodeRun } from "./node-run.js";
import { textAt } from "./node-text.js";

export interface CommitSpec extends NodeSpecBase {
  kind: "commit";
  message: Text;
  author?: { name: string; email: string };
}

export interface CommitNode extends NodeBase {
  readonly kind: "commit";
  readonly message: Text;
  readonly author?: { readonly name: string; readonly email: string };
}

const MAX_SUBJECT = 100;
const MAX_MESSAGE = 10_000;
const COMMIT_TIMEOUT = 600_000;

/** A commit of all that was changed. */
export const commitKind: NodeKindModule<CommitSpec, CommitNode> = {
  name: "commit",
  aliases: [],
  properties: {
    message: is.required(fields.text),
    author: is.object({ name: is.required(fields.name), email: is.required(fields.name) }),
  },
  harmless: ["message", "author.name", "author.email"],
  expectsChanges: true,
  normalize: ({ message, author }) => ({ message, ...defined({ author }) }),
  textsOf: ({ message }) => textAt(["message"], message),
  run: runCommit,
};

/** A commit of all that was changed. */
export function commit(spec: Omit<CommitSpec, "kind">): CommitSpec {
  return { ...spec, kind: "commit" };
}

/** Commits everything that was changed, in the sandbox. Nothing to commit is not a failure: the node is skipped. */
async function runCommit({ state, print, renderMessage }: NodeRun, node: CommitNode): Promise<NodeOutcome> {
  try {
    const message = toMessage(await renderMessage(node.message));
    const { exitCode, stdout, stderr } = await commitAll(state.sandbox, message, node.author ?? NOBODY, {
      timeout: node.timeout ?? COMMIT_TIMEOUT,
      signal: state.signal,
      ...(node.cwd !== undefined && { cwd: node.cwd }),
    });
    if (exitCode !== 0) {
      const { output } = await print(node.id, "stderr", stderr);
      const message = `git ended with exit code ${exitCode}: ${state.hide(stderr.trim(), 1_000)}`;
      return { status: "failure", exitCode, output, error: { code: "command_failed", message, retryable: false } };
    }
    const [first = "", ...rest] = stdout.split("\n");
    if (first === "nothing") return { status: "skipped", reason: "there is nothing to commit", output: "" };
    const { output } = await print(node.id, "stdout", rest.join("\n"));
    const isId = /^[0-9a-f]{40,64}$/.test(first);
    return { status: "success", exitCode, output, ...(isId && { commit: first }) };
  } catch (error) {
    return toOutcome(error, state);
  }
}

/** A subject of one line and bounded length; what did not fit goes below it. */
function toMessage(text: string): string {
  const clean = text
    .replace(/\r\n?/g, "\n")
    .replace(/[^\P{Cc}\n\t]/gu, "")
    .trim();
  const [line = "", ...rest] = clean.split("\n");
  const letters = [...line];
  const isLong = letters.length > MAX_SUBJECT;
  const subject = isLong ? `${letters.slice(0, MAX_SUBJECT - 1).join("")}…` : line;
  const body = (isLong ? clean : rest.join("\n").replace(/^\n+/, "")).slice(0, MAX_MESSAGE);
  return `${subject || "work"}\n${body === "" ? "" : `\n${body}\n`}`;
}

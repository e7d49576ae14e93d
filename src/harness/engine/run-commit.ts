import { commitAll, NOBODY } from "../commit-all.js";
import type { CommitNode } from "../types.js";
import { type StepOutcome, toOutcome } from "./failure.js";
import { OutputPipe } from "./output-pipe.js";
import type { RunState } from "./run-state.js";
import { renderMessage } from "./scope.js";

/** What became of a commit. */
export interface CommitOutcome extends StepOutcome {
  commit?: string;
  reason?: string;
}

const MAX_SUBJECT = 100;
const MAX_MESSAGE = 10_000;
const COMMIT_TIMEOUT = 600_000;

/** Commits everything that was changed, inside. Nothing to commit is no failure: the node is skipped. */
export async function runCommit(state: RunState, node: CommitNode): Promise<CommitOutcome> {
  const pipe = new OutputPipe((stream, bytes) => state.emitOutput({ nodeId: node.id, stream, bytes }), state.hidden);
  try {
    const message = toMessage(await renderMessage(state, node.message));
    const result = await commitAll(state.sandbox, message, node.author ?? NOBODY, {
      timeout: node.timeout ?? COMMIT_TIMEOUT,
      signal: state.signal,
      ...(node.cwd !== undefined && { cwd: node.cwd }),
    });
    const { exitCode, stdout, stderr } = result;
    if (exitCode !== 0) {
      await pipe.write("stderr", Buffer.from(stderr));
      await pipe.end();
      const message = `git ended with exit code ${exitCode}: ${state.hide(stderr.trim(), 1_000)}`;
      return {
        status: "failure",
        exitCode,
        output: pipe.kept.text,
        error: { code: "command_failed", message, retryable: false },
      };
    }
    const [first = "", ...rest] = stdout.split("\n");
    if (first === "nothing") return { status: "skipped", reason: "there is nothing to commit", output: "" };
    await pipe.write("stdout", Buffer.from(rest.join("\n")));
    await pipe.end();
    const isId = /^[0-9a-f]{40,64}$/.test(first);
    return { status: "success", exitCode, output: pipe.kept.text, ...(isId && { commit: first }) };
  } catch (error) {
    return toOutcome(error, state);
  }
}

/** A subject of one line and bounded length; what did not fit stands below it. */
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

import { SandboxError } from "../../../contracts/errors.js";
import type { Changes } from "../../../contracts/types.js";
import type { Sandbox } from "../../sandbox/types.js";
import { countOf } from "../../util/count-of.js";
import { countLines, type FileLines } from "../../util/git/patch-lines.js";
import { UsageError } from "../commands.js";
import { findRunOrSandbox } from "../find-id.js";
import type { Invocation } from "../invocation.js";
import { withKept } from "../kept-sandbox.js";
import { createSink, formatTable } from "../terminal.js";

const LETTERS: Readonly<Record<Changes["files"][number]["status"], string>> = {
  added: "A",
  modified: "M",
  deleted: "D",
  renamed: "R",
};

/** `glovebox diff <id>`. */
export async function run(invocation: Invocation): Promise<number> {
  const { operands, flags, screen } = invocation;
  const [given = ""] = operands;
  const [isStat, isNames] = [flags.has("stat"), flags.has("name-status")];
  if (isStat && isNames) throw new UsageError("--stat and --name-status exclude each other", "remove one of them");
  const { run: runId, sandbox: id = given } = await findRunOrSandbox(given);
  const changes =
    runId === undefined
      ? await withKept(invocation, id, `comparing ${id}`, changesOf)
      : await (await import("../../harness.js")).changesOf(runId);
  if (flags.has("json")) {
    const { patch, files } = changes;
    await screen.printJson(isStat ? { files: withLines(changes) } : isNames ? { files } : { patch, files });
    return 0;
  }
  const text = isStat ? statOf(withLines(changes)) : isNames ? namesOf(changes) : changes.patch;
  const sink = createSink(screen, screen.stdout);
  await sink.write(Buffer.from(text));
  await sink.end();
  return 0;
}

async function changesOf(sandbox: Sandbox): Promise<Changes> {
  return await sandbox.changes().catch((error: unknown) => {
    if (!(error instanceof SandboxError) || error.code !== "unsupported" || error.hint !== undefined) throw error;
    const hint = "only a sandbox opened with --repo has a start to compare with";
    throw new SandboxError("unsupported", `Sandbox "${sandbox.id}" was not opened with a repository`, {
      cause: error,
      hint,
    });
  });
}

type Counted = Changes["files"][number] & FileLines;

/** Relies on a patch having its sections in the order of its files. */
function withLines({ patch, files }: Changes): Counted[] {
  const lines = countLines(patch);
  return files.map((file, at) => ({ ...file, ...(lines[at] ?? { added: 0, removed: 0 }) }));
}

function statOf(files: readonly Counted[]): string {
  const sum = (field: "added" | "removed"): number => files.reduce((total, file) => total + file[field], 0);
  const rows = files.map((file) => [
    ` ${shown(file.path)}`,
    file.isBinary === true ? "binary" : `+${file.added} -${file.removed}`,
  ]);
  const [changed, added] = [countOf(files.length, "file"), countOf(sum("added"), "line")];
  return `${formatTable(rows)}${changed} changed, ${added} added, ${sum("removed")} removed\n`;
}

function namesOf({ files }: Changes): string {
  return files.map(({ path, status }) => `${LETTERS[status]}\t${shown(path)}\n`).join("");
}

/** A name that would break its line is shown as a JSON string. */
function shown(path: string): string {
  return /[\p{Cc}"\\]/u.test(path) ? JSON.stringify(path) : path;
}

import { findCommand, UsageError } from "../../commands.js";
import type { Parsed } from "../../invocation.js";

export type BatchAction = "run" | "resume" | "retry" | "status" | "export";

/** What an action that runs something does not take. Where nothing else is said, what was written down counts. */
const REFUSED: Readonly<Record<"run" | "resume" | "retry", readonly string[]>> = {
  run: ["only", "format"],
  resume: ["only", "format", "backend", "trust"],
  retry: ["format", "backend", "trust"],
};
/** What an action that only reads takes. */
const TAKEN: Readonly<Record<"status" | "export", readonly string[]>> = {
  status: ["out", "shard", "json"],
  export: ["shard", "format", "json"],
};

/** Refuses flags that would change nothing: whoever gives them expects that they do. */
export function assertFlags(action: BatchAction, { flags, argv }: Pick<Parsed, "flags" | "argv">): void {
  const isTaken = (name: string): boolean =>
    action === "status" || action === "export" ? TAKEN[action].includes(name) : !REFUSED[action].includes(name);
  const useless = findCommand("batch").flags.find(({ name }) => flags.has(name) && !isTaken(name));
  if (useless !== undefined) {
    throw new UsageError(`batch ${action} takes no --${useless.name}`, hintOf(useless.name));
  }
  if (argv.length === 0 || action === "run") return;
  throw new UsageError("a batch has the command that it was started with", "leave out what follows --");
}

function hintOf(name: string): string {
  if (name === "only") return "glovebox batch retry takes it";
  if (name === "format") return "glovebox batch export takes it";
  return "glovebox batch run takes it; leave it out";
}

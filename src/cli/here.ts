import { resolve } from "node:path";
import { SandboxError } from "../../contracts/errors.js";
import { holdsTooMuch } from "../machine/holds-too-much.js";
import type { Sandbox } from "../sandbox/types.js";
import type { OpenOptions } from "../sandbox.js";
import { parseWord, UsageError } from "./commands.js";
import type { Flags } from "./invocation.js";

/** The current directory, as `--here` gives it to a sandbox. */
export interface Here {
  readonly kind: "read-only" | "copy";
  /** Its real path on this machine. */
  readonly path: string;
}

const OTHERS = ["repo", "base-dir", "id", "snapshot", "reopen"] as const;

/** What `--here` asks for; refused where the current directory is more than a project. */
export function hereOf(flags: Flags): Here | undefined {
  if (!flags.has("here")) return undefined;
  const other = OTHERS.find((name) => flags.has(name));
  if (other !== undefined) throw new UsageError(`--here does not go together with --${other}`, "remove one of them");
  const text = flags.text("here") ?? "";
  const kind = text === "" ? "read-only" : parseWord("--here", text, ["copy"]);
  const path = process.cwd();
  const reason = holdsTooMuch(path);
  if (reason === undefined) return { kind, path };
  throw new SandboxError("invalid_argument", `--here refuses ${path} — ${reason}`, {
    hint: "change to the directory of a project first",
  });
}

/** The options of a sandbox that sees the current directory: at the same path, read-only. A copy is made once it is open. */
export function withHere(options: OpenOptions, here: Here | undefined): OpenOptions {
  if (here?.kind !== "read-only") return options;
  if (options.paths === "workdir")
    throw new UsageError("--here starts the command outside the work directory", "leave --paths workdir out");
  const mounts = [...(options.mounts ?? []), { source: here.path, target: here.path }];
  return { ...options, mounts, paths: "sandbox" };
}

/** Explains a backend that can't mount. */
export function explainHere(error: unknown, here: Here | undefined): unknown {
  if (here?.kind !== "read-only" || !(error instanceof SandboxError) || error.code !== "unsupported") return error;
  const { code, message, backend, operation, cause } = error;
  return new SandboxError(code, message, { backend, operation, cause, hint: "--here=copy copies the directory in" });
}

/** Copies the current directory into the sandbox, if that was asked for. Links are copied as links. */
export async function copyHere(sandbox: Sandbox, here: Here | undefined, signal: AbortSignal): Promise<void> {
  if (here?.kind === "copy") await sandbox.refreshFromHost(here.path, ".", { signal });
}

/** The directory that a command starts in, as an option: with `--here`, that is the current one. */
export function startHere(here: Here | undefined, cwd: string | undefined): { cwd?: string } {
  if (here?.kind !== "read-only") return cwd === undefined ? {} : { cwd };
  return { cwd: resolve(here.path, cwd ?? ".") };
}

import { existsSync } from "node:fs";
import type { SandboxEvent } from "../../contracts/types.js";
import type { OpenOptions } from "../sandbox.js";
import {
  parseCores,
  parseCount,
  parseDuration,
  parseEnv,
  parseLabels,
  parseLifetime,
  parseMount,
  parseNetwork,
  parsePort,
  parseSize,
  parseWord,
} from "./commands.js";
import type { Flags, Invocation } from "./invocation.js";
import type { Screen } from "./terminal.js";
import { findToken, isFor } from "./token.js";

/** Turns the flags that `exec` and `shell` share into the options of a sandbox. */
export function toOpenOptions({ flags, screen, interruption }: Invocation): OpenOptions {
  const limits = {
    ...given(flags, "memory", "memory", parseSize),
    ...given(flags, "pids", "pids", parseCount),
    ...given(flags, "cpus", "cpus", parseCores),
    ...given(flags, "disk", "disk", parseSize),
  };
  return {
    ...given(flags, "backend", "backend", asIs),
    ...given(flags, "repo", "repo", asIs),
    ...tokenFor(flags.text("repo")),
    ...given(flags, "branch", "branch", asIs),
    ...given(flags, "workspace", "workspace", parseWorkspace),
    ...(flags.has("git-filter") && { gitFilters: flags.texts("git-filter") }),
    ...(flags.has("git-alternate") && { gitAlternates: flags.texts("git-alternate") }),
    ...given(flags, "base-dir", "baseDir", asIs),
    ...given(flags, "work-dir", "workDir", asIs),
    ...given(flags, "image", "image", asIs),
    ...given(flags, "snapshot", "snapshot", asIs),
    ...given(flags, "id", "id", asIs),
    ...given(flags, "ttl", "ttl", parseLifetime),
    ...given(flags, "idle", "idleTimeout", parseLifetime),
    ...given(flags, "network", "network", parseNetwork),
    ...given(flags, "isolation", "isolation", parseIsolation),
    ...(Object.keys(limits).length > 0 && { limits }),
    ...(flags.has("env") && { env: parseEnv("--env", flags.texts("env"), process.env) }),
    ...(flags.has("mount") && { mounts: flags.texts("mount").map((text) => parseMount("--mount", text)) }),
    ...(flags.has("publish") && { publish: flags.texts("publish").map((text) => parsePort("--publish", text)) }),
    ...(flags.has("keep") && { keep: parseKeep(flags.text("keep") ?? "") }),
    ...namingOf(flags),
    ...(flags.has("reopen") && { ifExists: "reopen" as const }),
    signal: interruption.signal,
    onEvent: reportEvents(screen),
  };
}

/** The name and the labels of a new sandbox. */
export function namingOf(flags: Flags): Pick<OpenOptions, "name" | "labels"> {
  return {
    ...given(flags, "name", "name", asIs),
    ...(flags.has("label") && { labels: parseLabels("--label", flags.texts("label")) }),
  };
}

function parseKeep(text: string): true | "all" {
  return text === "" ? true : parseWord<"all">("--keep", text, ["all"]);
}

/** A handler that prints warnings and leaks, which are not part of a verb's result. */
export function reportEvents(screen: Screen): (event: SandboxEvent) => void {
  return ({ type, message }) => {
    if (type === "progress") void screen.printNote(message);
    if (type === "warning") void screen.printNote(`warning: ${message}`);
    if (type === "leak") void screen.printError(message, "glovebox reap tries again");
  };
}

/** The value of `--timeout` in milliseconds. */
export function timeoutOf(flags: Flags): { timeout?: number } {
  return given(flags, "timeout", "timeout", parseDuration);
}

function given<K extends string, T>(
  flags: Flags,
  flag: string,
  option: K,
  parse: (flag: string, text: string) => T,
): { [P in K]?: T } {
  const text = flags.text(flag);
  return text === undefined ? {} : ({ [option]: parse(`--${flag}`, text) } as { [P in K]?: T });
}

/** Anything that is not a path on this machine may be a remote repository that needs a token. */
function tokenFor(repo: string | undefined): { githubToken?: string } {
  const found = repo === undefined || existsSync(repo) ? undefined : findToken(process.env);
  return found === undefined || repo === undefined || !isFor(found, repo) ? {} : { githubToken: found.token };
}

function parseIsolation(flag: string, text: string): "required" | "none" {
  return parseWord(flag, text, ["required", "none"]);
}

function parseWorkspace(flag: string, text: string): "worktree" | "overlay" | "copy" {
  return parseWord(flag, text, ["worktree", "overlay", "copy"]);
}

function asIs(_flag: string, text: string): string {
  return text;
}

import { existsSync } from "node:fs";
import type { SandboxEvent } from "../../contracts/types.js";
import { loadUserConfig } from "../sandbox/host.js";
import type { OpenOptions } from "../sandbox.js";
import {
  type Flag,
  parseCores,
  parseCount,
  parseDuration,
  parseEnv,
  parseLabels,
  parseLifetime,
  parseMount,
  parsePort,
  parseSecrets,
  parseSize,
  parseWord,
  SANDBOX_FLAGS,
} from "./commands.js";
import { findSandboxId, findSnapshotId } from "./find-id.js";
import { nameFlags } from "./flag-names.js";
import type { Flags, Invocation } from "./invocation.js";
import { KNOWN_SECRETS } from "./known-secrets.js";
import { withNameSets } from "./name-sets.js";
import { networkOf } from "./network-flag.js";
import type { Screen } from "./terminal.js";
import { tokenFor } from "./token.js";

/** Turns the flags that `exec` and `shell` share into the options of a sandbox. */
export async function toOpenOptions({ flags: typed, screen, interruption }: Invocation): Promise<OpenOptions> {
  const flags = await withNameSets(typed, screen, interruption.signal);
  const limits = {
    ...given(flags, "memory", "memory", parseSize),
    ...given(flags, "pids", "pids", parseCount),
    ...given(flags, "cpus", "cpus", parseCores),
    ...given(flags, "disk", "disk", parseSize),
  };
  return {
    ...given(flags, "backend", "backend", asIs),
    ...given(flags, "repo", "repo", asIs),
    ...tokenFor(remoteOf(flags.text("repo")), process.env),
    ...given(flags, "branch", "branch", asIs),
    ...given(flags, "workspace", "workspace", parseWorkspace),
    ...(flags.has("git-filter") && { gitFilters: flags.texts("git-filter") }),
    ...(flags.has("git-alternate") && { gitAlternates: flags.texts("git-alternate") }),
    ...given(flags, "base-dir", "baseDir", asIs),
    ...given(flags, "work-dir", "workDir", asIs),
    ...given(flags, "paths", "paths", parsePaths),
    ...given(flags, "image", "image", asIs),
    ...(flags.has("snapshot") && { snapshot: await findSnapshotId(flags.text("snapshot") ?? "") }),
    ...(flags.has("id") && { id: await findSandboxId(flags.text("id") ?? "") }),
    ...given(flags, "ttl", "ttl", parseLifetime),
    ...given(flags, "idle", "idleTimeout", parseLifetime),
    ...(await networkOf(flags)),
    ...given(flags, "audit", "audit", asIs),
    ...given(flags, "isolation", "isolation", parseIsolation),
    ...(Object.keys(limits).length > 0 && { limits }),
    ...(flags.has("env") && { env: parseEnv("--env", flags.texts("env"), process.env) }),
    ...(await secretsOf(flags)),
    ...(flags.has("mount") && { mounts: flags.texts("mount").map((text) => parseMount("--mount", text)) }),
    ...(flags.has("publish") && { publish: flags.texts("publish").map((text) => parsePort("--publish", text)) }),
    ...(flags.has("keep") && { keep: parseKeep(flags.text("keep") ?? "") }),
    ...namingOf(flags),
    ...(flags.has("reopen") && { ifExists: "reopen" as const }),
    signal: interruption.signal,
    onEvent: reportEvents(screen, SANDBOX_FLAGS),
  };
}

/** The name and the labels of a new sandbox. */
export function namingOf(flags: Flags): Pick<OpenOptions, "name" | "labels"> {
  return {
    ...given(flags, "name", "name", asIs),
    ...(flags.has("label") && { labels: parseLabels("--label", flags.texts("label")) }),
  };
}

/** The secrets that the flags name, as the user's configuration file or everybody knows them. */
export async function secretsOf(flags: Flags): Promise<Pick<OpenOptions, "secrets">> {
  if (!flags.has("secret")) return {};
  const { config: { secrets = {} } = {} } = (await loadUserConfig()) ?? {};
  return { secrets: parseSecrets("--secret", flags.texts("secret"), { ...KNOWN_SECRETS, ...secrets }) };
}

function parseKeep(text: string): true | "all" {
  return text === "" ? true : parseWord<"all">("--keep", text, ["all"]);
}

/** A handler that prints warnings and leaks, which are not part of a verb's result. Options are named as the verb's flags. */
export function reportEvents(screen: Screen, flags: readonly Flag[] = []): (event: SandboxEvent) => void {
  return ({ type, message }) => {
    if (type === "progress") void screen.printNote(message);
    if (type === "warning") void screen.printNote(`warning: ${nameFlags(message, flags)}`);
    if (type === "leak") void screen.printError(message, "glovebox reap tries again");
  };
}

/** How to run the command: `--timeout` in milliseconds, `--cwd` and `--user`. */
export function callOptionsOf(flags: Flags): { timeout?: number; cwd?: string; user?: string } {
  return {
    ...given(flags, "timeout", "timeout", parseDuration),
    ...given(flags, "cwd", "cwd", asIs),
    ...given(flags, "user", "user", asIs),
  };
}

/** The repository to clone; a path on this machine needs no token until it is pushed. */
export function remoteOf(repo: string | undefined): string | undefined {
  return repo === undefined || existsSync(repo) ? undefined : repo;
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

function parseIsolation(flag: string, text: string): "required" | "none" {
  return parseWord(flag, text, ["required", "none"]);
}

function parsePaths(flag: string, text: string): "workdir" | "sandbox" {
  return parseWord(flag, text, ["workdir", "sandbox"]);
}

function parseWorkspace(flag: string, text: string): "worktree" | "overlay" | "copy" {
  return parseWord(flag, text, ["worktree", "overlay", "copy"]);
}

function asIs(_flag: string, text: string): string {
  return text;
}

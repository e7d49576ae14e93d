import { existsSync } from "node:fs";
import { dirname, isAbsolute } from "node:path";
import { SandboxError } from "../../contracts/errors.js";
import { makeDirectories } from "../util/make-directories.js";
import { CLIENT_FILES, type ClientEntry, type ClientName, type InstallOptions } from "./install/client-files.js";
import { readConfig, removeConfig, replaceConfig } from "./install/config-file.js";
import { editJson } from "./install/json-entry.js";
import { editToml } from "./install/toml-entry.js";

export { CLIENTS, type ClientEntry, type ClientName, type InstallOptions } from "./install/client-files.js";

/** What was done to a client's configuration. */
export interface InstallReport {
  readonly client: ClientName;
  readonly file: string;
  /** With `dryRun`: whether it would have been. */
  readonly changed: boolean;
}

/** Writes the server into the configuration of a client. Changes nothing if it is there already. */
export async function installClient(options: InstallOptions, entry: ClientEntry): Promise<InstallReport> {
  assertAbsolute(entry);
  return await change(options, entry);
}

/** Takes the server out of the configuration of a client again. Everything else in the file stays. */
export async function removeClient(options: InstallOptions): Promise<InstallReport> {
  return await change(options, undefined);
}

/** The configuration that a client without any other would have for the server, to be added by hand. */
export function clientConfig(options: InstallOptions, entry: ClientEntry): string {
  assertAbsolute(entry);
  return edited("", options, entry);
}

async function change(options: InstallOptions, entry: ClientEntry | undefined): Promise<InstallReport> {
  const { client, dryRun = false } = options;
  const { file, below } = CLIENT_FILES[client].place(options);
  const before = readConfig(file, below);
  const after = edited(before?.text ?? "", options, entry);
  const changed = after !== (before?.text ?? "");
  if (!changed || dryRun) return { client, file, changed };
  if (after.trim() === "" || after.trim() === "{}") removeConfig(file);
  else {
    if (!existsSync(dirname(file))) makeDirectories(dirname(file));
    await replaceConfig(file, after, before?.mode ?? 0o600);
  }
  return { client, file, changed };
}

function edited(text: string, options: InstallOptions, entry: ClientEntry | undefined): string {
  const { client, name = "glovebox" } = options;
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(name)) {
    throw new SandboxError(
      "invalid_argument",
      `Invalid name ${JSON.stringify(name)}: expected letters, digits, - and _`,
    );
  }
  const format = CLIENT_FILES[client];
  const { file } = format.place(options);
  const edit = format.kind === "toml" ? editToml : editJson;
  const change = { file, name, keys: format.keys, entry: entry && format.entry(entry) };
  if (!/\r\n/.test(text) || /(?:^|[^\r])\n/.test(text)) return edit(text, change);
  return edit(text.replaceAll("\r\n", "\n"), change).replaceAll("\n", "\r\n");
}

function assertAbsolute({ command }: ClientEntry): void {
  if (isAbsolute(command)) return;
  const message = `Invalid command: expected an absolute path, got ${JSON.stringify(command)}`;
  throw new SandboxError("invalid_argument", message);
}

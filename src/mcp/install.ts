import { existsSync } from "node:fs";
import { dirname, isAbsolute } from "node:path";
import { SandboxError } from "../../contracts/errors.js";
import { writeFileAtomic } from "../machine/atomic-file.js";
import { makeDirectories } from "../util/make-directories.js";
import { CLIENT_FILES, type ClientEntry, type ClientName, type InstallOptions } from "./install/client-files.js";
import { readConfig, removeConfig } from "./install/config-file.js";
import { editJson } from "./install/json-entry.js";
import { editToml } from "./install/toml-entry.js";

export { CLIENTS, type ClientEntry, type ClientName, type InstallOptions } from "./install/client-files.js";

/** What was done to a client's configuration. */
export interface InstallReport {
  readonly client: ClientName;
  readonly file: string;
  readonly changed: boolean;
}

/** Writes the server into the configuration of a client. Changes nothing if it is there already. */
export async function installClient(options: InstallOptions, entry: ClientEntry): Promise<InstallReport> {
  if (!isAbsolute(entry.command)) {
    throw new SandboxError(
      "invalid_argument",
      `Invalid command: expected an absolute path, got ${JSON.stringify(entry.command)}`,
    );
  }
  return await change(options, entry);
}

/** Takes the server out of the configuration of a client again. Everything else in the file stays. */
export async function removeClient(options: InstallOptions): Promise<InstallReport> {
  return await change(options, undefined);
}

async function change(options: InstallOptions, entry: ClientEntry | undefined): Promise<InstallReport> {
  const { client, name = "glovebox" } = options;
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(name)) {
    throw new SandboxError(
      "invalid_argument",
      `Invalid name ${JSON.stringify(name)}: expected letters, digits, - and _`,
    );
  }
  const format = CLIENT_FILES[client];
  const { file, below } = format.place(options);
  const before = readConfig(file, below);
  const edit = format.kind === "toml" ? editToml : editJson;
  const after = edit(before?.text ?? "", { file, name, keys: format.keys, entry: entry && format.entry(entry) });
  if (after === (before?.text ?? "") || (before === undefined && entry === undefined))
    return { client, file, changed: false };
  if (after.trim() === "" || after.trim() === "{}") removeConfig(file);
  else {
    if (!existsSync(dirname(file))) makeDirectories(dirname(file));
    await writeFileAtomic(file, after, before?.mode ?? 0o600);
  }
  return { client, file, changed: true };
}

import { toSandboxError } from "../../contracts/errors.js";
import type { BackendName, Sandbox, SandboxOptions } from "../../contracts/sandbox.js";
import { findSandboxId, findSnapshotRecord, readRecord } from "../ledger.js";
import { invalidArgument } from "../util/schema.js";
import { openWith } from "./lifecycle.js";
import { chooseBackend, loadBackend } from "./registry.js";

export { WORKSPACE, withPreferredWorkDir } from "./open/preferred-work-dir.js";

/** Options of `openSandbox`. */
export interface OpenOptions extends SandboxOptions {
  /**
   * Name of a backend, path of a module, or name of a package that is installed next to Glovebox. Default: the backend that made `id` or
   * `snapshot`, otherwise the one that the environment names, otherwise `local`.
   */
  backend?: BackendName | (string & {});
}

/** Opens a sandbox: checks the options, loads the backend, and makes a new sandbox or reopens a kept one. */
export async function openSandbox(opts: OpenOptions = {}): Promise<Sandbox> {
  if (typeof opts !== "object" || opts === null) throw invalidArgument("options", "an object", opts);
  const { backend, ...rest } = opts;
  if (backend !== undefined && (typeof backend !== "string" || backend === "")) {
    throw invalidArgument("backend", "the name of a backend", backend);
  }
  const name = backend ?? (await backendOf(rest)) ?? chooseBackend(process.env);
  try {
    return await openWith(await loadBackend(name), rest);
  } catch (error) {
    throw toSandboxError(error, { backend: name, operation: "open" });
  }
}

/** The ledger knows the backend of a sandbox that exists, and of a snapshot. */
async function backendOf({ id, name, ifExists, snapshot }: SandboxOptions): Promise<string | undefined> {
  const reference: unknown = ifExists === "reopen" ? (id ?? name) : id;
  const found = typeof reference === "string" ? await findSandboxId(reference) : undefined;
  if (found !== undefined) return (await readRecord(found))?.backend;
  return id === undefined && typeof snapshot === "string" ? (await findSnapshotRecord(snapshot)).backend : undefined;
}

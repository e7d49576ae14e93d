import type { NetworkPolicy } from "../../contracts/types.js";
import { findSandboxId } from "../ledger.js";
import {
  capabilitiesOf,
  chooseBackend,
  type OpenOptions,
  WORKSPACE,
  withPreferredWorkDir,
  withUserConfig,
} from "../sandbox.js";

/**
 * The options of a sandbox for a model: the user's configuration, `/workspace` as its work directory, and file tools that reach whatever a command
 * can, where the backend has that and the options say nothing else.
 */
export async function withServerDefaults(options: OpenOptions): Promise<OpenOptions> {
  const filled = await withPreferredWorkDir(await withUserConfig(options), WORKSPACE);
  const { backend = chooseBackend(process.env), paths, id, name, ifExists, isolation } = filled;
  if (paths !== undefined || id !== undefined || isolation === "none") return filled;
  // One that exists has its own.
  if (ifExists === "reopen" && name !== undefined && (await findSandboxId(name)) !== undefined) return filled;
  const can = (await capabilitiesOf(backend))?.paths?.includes("sandbox") === true;
  return can ? { ...filled, paths: "sandbox" } : filled;
}

/** The network that the sandboxes will have; undefined: one that exists is opened again, which has its own. What is wrong is said by the first call. */
export async function networkOf(options: OpenOptions): Promise<NetworkPolicy | undefined> {
  const {
    network,
    backend = chooseBackend(process.env),
    id,
    ifExists,
  } = await withUserConfig(options).catch(() => options);
  if (network !== undefined || id !== undefined || ifExists === "reopen") return network;
  const able = (await capabilitiesOf(backend).catch(() => undefined))?.network;
  return able?.includes("none") === false ? "full" : "none";
}

import type { Sandbox } from "../../contracts/sandbox.js";
import {
  capabilitiesOf,
  chooseBackend,
  type OpenOptions,
  openSandbox,
  WORKSPACE,
  withPreferredWorkDir,
} from "../sandbox.js";

/**
 * Opens a sandbox for an agent. Unless the options say otherwise, it works in `/workspace`, and file calls reach what commands reach: models write to
 * `/tmp` with one tool and read it with another.
 */
export async function openForAgent(options: OpenOptions = {}): Promise<Sandbox> {
  const { backend = chooseBackend(process.env), paths, id, isolation } = options;
  const isFixed = paths !== undefined || id !== undefined || isolation === "none";
  const reachesAll = !isFixed && (await capabilitiesOf(backend))?.paths?.includes("sandbox") === true;
  return await openSandbox(
    await withPreferredWorkDir({ ...options, ...(reachesAll && { paths: "sandbox" }) }, WORKSPACE),
  );
}

/** How to keep a sandbox that will be resumed: with `$HOME` and `/tmp` where the backend can, unless the options say otherwise. */
export async function keepOf({ backend = chooseBackend(process.env), keep }: OpenOptions): Promise<boolean | "all"> {
  return keep ?? ((await capabilitiesOf(backend))?.keep === "all" ? "all" : true);
}

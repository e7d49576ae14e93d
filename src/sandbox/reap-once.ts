import { reap } from "./reap.js";

let done: Promise<unknown> | undefined;

/** Removes what dead processes left, the first time this process opens a sandbox; later calls do nothing. */
export async function reapOnce(): Promise<void> {
  // What could not be removed is no reason not to go on: it stays in the ledger, where `listSandboxes` shows it.
  done ??= reap().catch(() => undefined);
  await done;
}

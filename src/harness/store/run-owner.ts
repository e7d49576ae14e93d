import { writeFileSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { SandboxError } from "../../../contracts/errors.js";
import { currentOwner, isOwnerAlive, type Owner, withLock } from "../../sandbox/host.js";
import type { RunDirectory } from "./run-directory.js";

const FILE = "owner.json";

/** Makes this process the one that works on a run; `conflict` while another one does. */
export async function claimRun(directory: RunDirectory): Promise<void> {
  await withLock(`run:${directory.path}`, async () => {
    await assertNotRunning(directory);
    await writeFile(directory.state(FILE), JSON.stringify(currentOwner()), { mode: 0o600 });
  });
}

/** Refuses a run that a process works on now. */
export async function assertNotRunning(directory: RunDirectory): Promise<void> {
  if (!(await isRunning(directory))) return;
  const { runId } = directory;
  throw new SandboxError("conflict", `Run "${runId}" is still running`, {
    retryable: false,
    hint: `glovebox stop ${runId} ends it; glovebox logs ${runId} -f follows it`,
  });
}

/** Ends the claim of this process on a run. */
export function releaseRun(directory: RunDirectory): void {
  writeFileSync(directory.state(FILE), "null", { mode: 0o600 });
}

/** Whether a process works on a run now. */
export async function isRunning(directory: RunDirectory): Promise<boolean> {
  const text = await readFile(directory.state(FILE), "utf8").catch(() => "null");
  let owner: Owner | null;
  try {
    owner = JSON.parse(text) as Owner | null;
  } catch {
    // Half a file: its writer was killed, or is just writing it.
    return false;
  }
  return owner !== null && isOwnerAlive(owner) !== "dead";
}

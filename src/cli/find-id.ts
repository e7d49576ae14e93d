import { SandboxError } from "../../contracts/errors.js";
import { listSandboxes, listSnapshots } from "../sandbox.js";

const MOST_SHOWN = 10;

/** The full id of a sandbox that is given by its id, its name, or the start of its id. An unknown one stays as it is. */
export async function findSandboxId(given: string): Promise<string> {
  if (!/^[0-9a-f]{1,15}$/.test(given)) return given;
  const sandboxes = await listSandboxes();
  if (sandboxes.some(({ name }) => name === given)) return given;
  return onlyOne(
    given,
    "sandboxes",
    sandboxes.map(({ id }) => id),
  );
}

/** The full id of a snapshot that is given by its id, its name, or the start of its id. An unknown one stays as it is. */
export async function findSnapshotId(given: string): Promise<string> {
  if (!/^[0-9a-f]+[0-9a-f-]*$/.test(given)) return given;
  const snapshots = await listSnapshots();
  if (snapshots.some(({ id, name }) => id === given || name === given)) return given;
  return onlyOne(
    given,
    "snapshots",
    snapshots.map(({ id }) => id),
  );
}

/** The full id of a run that is given by its id or the start of it. An unknown one stays as it is. */
export async function findRunId(given: string): Promise<string> {
  const { isRun, listRuns } = await import("../harness.js");
  if (given === "" || (await isRun(given))) return given;
  return onlyOne(
    given,
    "runs",
    (await listRuns()).map(({ runId }) => runId),
  );
}

/** What an operand means that may be a run or a sandbox. A run comes before a sandbox of that name. */
export async function findRunOrSandbox(given: string): Promise<{ run?: string; sandbox?: string }> {
  if (/^[0-9a-f]{16}$/.test(given)) return { sandbox: given };
  const { isRun, listRuns } = await import("../harness.js");
  if (await isRun(given)) return { run: given };
  const sandboxes = await listSandboxes();
  if (sandboxes.some(({ name }) => name === given)) return { sandbox: given };
  const runs = (await listRuns()).map(({ runId }) => runId);
  const id = onlyOne(given, "runs and sandboxes", [...runs, ...sandboxes.map((sandbox) => sandbox.id)]);
  if (runs.includes(id)) return { run: id };
  return id === given ? {} : { sandbox: id };
}

function onlyOne(start: string, what: string, ids: readonly string[]): string {
  const found = ids.filter((id) => id.startsWith(start));
  if (found.length < 2) return found[0] ?? start;
  const more = found.length > MOST_SHOWN ? ` and ${found.length - MOST_SHOWN} more` : "";
  throw new SandboxError("invalid_argument", `"${start}" is the start of the ids of ${found.length} ${what}`, {
    hint: `type more of it: ${found.slice(0, MOST_SHOWN).join(", ")}${more}`,
  });
}

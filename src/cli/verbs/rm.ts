import { SandboxError } from "../../../contracts/errors.js";
import { listSandboxes, removeSandbox } from "../../sandbox.js";
import { nearestName } from "../../util/nearest.js";
import { UsageError } from "../commands.js";
import { findSandboxId } from "../find-id.js";
import type { Invocation } from "../invocation.js";
import { knownReferences } from "../kept-sandbox.js";
import { removeEach } from "../remove-each.js";
import { askYesNo } from "../terminal.js";

/** `glovebox rm <id>…`, or `--all`: stops at the first that can't be removed. */
export async function run(invocation: Invocation): Promise<number> {
  const { flags, screen } = invocation;
  const ids = await idsOf(invocation);
  if (ids === undefined) return 1;
  const remove = (id: string): Promise<void> => removeSandbox(id).catch((error: unknown) => explain(error, id));
  const removed = await removeEach(ids, invocation, remove);
  if (flags.has("json")) await screen.printJson({ removed });
  return 0;
}

/** The sandboxes to remove; undefined if the user does not want it after all. */
async function idsOf({ operands, flags, screen, interruption }: Invocation): Promise<string[] | undefined> {
  if (!flags.has("all")) {
    if (flags.has("yes")) throw new UsageError("--yes needs --all", "name the sandboxes without --yes");
    if (operands.length === 0) throw new UsageError("rm needs <id|name>… or --all", "glovebox ls lists the ids");
    return await Promise.all(operands.map(findSandboxId));
  }
  if (operands.length > 0) throw new UsageError("--all takes no ids", "remove --all, or the ids");
  const kept = (await listSandboxes()).filter(({ state, alive }) => state === "kept" && !alive).map(({ id }) => id);
  if (kept.length === 0 || flags.has("yes")) {
    if (kept.length === 0) await screen.printNote("there are no kept sandboxes");
    return kept;
  }
  const what = `${kept.length} kept ${kept.length === 1 ? "sandbox" : "sandboxes"}`;
  const answer = await askYesNo(`Remove ${what} with their files for good?`, screen, interruption.signal);
  if (answer === undefined)
    throw new UsageError(`this would remove ${what}, and there is no terminal to ask`, "add --yes");
  if (!answer) await screen.printNote("nothing was removed");
  return answer ? kept : undefined;
}

async function explain(error: unknown, id: string): Promise<never> {
  if (!(error instanceof SandboxError)) throw error;
  const { code, message, backend, operation, cause } = error;
  let { hint } = error;
  if (code === "conflict") hint ??= "end that process first, then try again";
  if (code === "not_found" || code === "invalid_argument") {
    const nearest = nearestName(id, await knownReferences());
    hint ??= nearest === undefined ? "glovebox ls lists the ids" : `did you mean ${nearest}?`;
  }
  throw new SandboxError(code, message, { backend, operation, cause, hint });
}

import { SandboxError } from "../../../contracts/errors.js";
import { removeSandbox } from "../../sandbox.js";
import { nearestName } from "../../util/nearest.js";
import type { Invocation } from "../invocation.js";
import { knownReferences } from "../kept-sandbox.js";
import { removeEach } from "../remove-each.js";

/** `glovebox rm <id>…`: stops at the first that can't be removed. */
export async function run(invocation: Invocation): Promise<number> {
  const { operands, flags, screen } = invocation;
  const remove = (id: string): Promise<void> => removeSandbox(id).catch((error: unknown) => explain(error, id));
  const removed = await removeEach(operands, invocation, remove);
  if (flags.has("json")) await screen.printJson({ removed });
  return 0;
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

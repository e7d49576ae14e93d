import { nearestName } from "../../util/nearest.js";
import { COMMANDS } from "./all.js";
import type { CliCommand } from "./command.js";
import { UsageError } from "./usage-error.js";

/** Finds a verb by name; the error for an unknown one suggests the nearest. */
export function findCommand(verb: string): CliCommand {
  const found = COMMANDS.find(({ name }) => name === verb);
  if (found !== undefined) return found;
  if (verb.startsWith("-"))
    throw new UsageError(`"${verb}" comes before the verb`, "flags follow the verb; glovebox --help lists the verbs");
  const nearest = nearestName(
    verb,
    COMMANDS.map(({ name }) => name),
  );
  throw new UsageError(
    `unknown verb "${verb}"`,
    nearest === undefined ? "glovebox --help lists the verbs" : `did you mean ${nearest}?`,
  );
}

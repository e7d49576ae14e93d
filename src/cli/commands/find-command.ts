import { nearestName } from "../../util/nearest.js";
import { COMMANDS } from "./all.js";
import type { CliCommand } from "./command.js";
import { UsageError } from "./usage-error.js";

const GENERAL_FLAGS = ["--help", "--version"] as const;

/** Finds a verb by name; the error for an unknown one suggests the nearest. */
export function findCommand(verb: string): CliCommand {
  const found = COMMANDS.find(({ name }) => name === verb);
  if (found !== undefined) return found;
  const isFlag = verb.startsWith("-");
  const nearest = nearestName(verb, isFlag ? GENERAL_FLAGS : COMMANDS.map(({ name }) => name));
  if (isFlag && nearest === undefined)
    throw new UsageError(`"${verb}" comes before the verb`, "flags follow the verb; glovebox --help lists the verbs");
  throw new UsageError(
    `unknown ${isFlag ? "flag" : "verb"} "${verb}"`,
    nearest === undefined ? "glovebox --help lists the verbs" : `did you mean ${nearest}?`,
  );
}

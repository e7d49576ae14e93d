import { nearestName } from "../../util/nearest.js";
import { COMMANDS } from "./all.js";
import type { CliCommand } from "./command.js";
import { UsageError } from "./usage-error.js";

const GENERAL_FLAGS = ["--help", "--version"] as const;

/** What other tools call it, and what it is here. */
const FAMILIAR: readonly (readonly [hint: string, ...verbs: string[]])[] = [
  [
    "glovebox export copies out of a sandbox, glovebox import into it",
    ...["cp", "copy", "get", "put", "pull", "upload", "download"],
  ],
  ["glovebox ls lists the sandboxes", "ps", "list", "inspect"],
  ["glovebox rm removes a sandbox", "kill", "remove", "delete", "destroy", "down"],
  [
    "glovebox exec --keep makes a sandbox that stays, glovebox exec --id opens it again",
    ...["create", "new", "up", "start", "open", "attach", "reopen"],
  ],
  ["glovebox exec --publish makes a port of the sandbox reachable", "port", "ports", "publish", "url"],
  ["glovebox snapshots lists the snapshots, and deletes some", "rmi", "images"],
];

/** Finds a verb by name; the error for an unknown one suggests the nearest. */
export function findCommand(verb: string): CliCommand {
  const found = COMMANDS.find(({ name }) => name === verb);
  if (found !== undefined) return found;
  const isFlag = verb.startsWith("-");
  const familiar = FAMILIAR.find(([, ...verbs]) => verbs.includes(verb))?.[0];
  const nearest = nearestName(verb, isFlag ? GENERAL_FLAGS : COMMANDS.map(({ name }) => name));
  if (isFlag && nearest === undefined)
    throw new UsageError(`"${verb}" comes before the verb`, "flags follow the verb; glovebox --help lists the verbs");
  throw new UsageError(
    `unknown ${isFlag ? "flag" : "verb"} "${verb}"`,
    familiar ?? (nearest === undefined ? "glovebox --help lists the verbs" : `did you mean ${nearest}?`),
  );
}

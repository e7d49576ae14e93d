import type { NetworkPolicy } from "../../contracts/types.js";
import type { McpServerOptions } from "./options.js";

/** What the server tells a model about itself, in less than a kilobyte. */
export function instructionsFor(
  { multi = false, sandbox: { repo, workDir = "/workspace" } = {} }: McpServerOptions,
  network: NetworkPolicy | undefined,
): string {
  return [
    multi
      ? "Commands and files are in sandboxes that you make with sandbox_create."
      : "Commands and files are in one sandbox, apart from the user's machine. It is made at your first call and removed when the session ends.",
    `The work directory is usually ${workDir}${repo === undefined ? "" : ", with the user's repository"}.`,
    networkLine(network),
    "exec answers after 45 seconds at the latest; a longer command goes on, and process_read follows it. Start servers with exec and a short yield_ms.",
    "Long output is cut in the middle; the answer says how to read the rest.",
  ].join(" ");
}

function networkLine(network: NetworkPolicy | undefined): string {
  if (network === "full") return "The network is open.";
  if (network === undefined || network === "none" || network.allow.length === 0)
    return "There is no network unless the user opened it.";
  return "Only some hosts can be reached; the user decides which.";
}

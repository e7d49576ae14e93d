import type { AgentDriver } from "../types.js";
import { AcpDialog } from "./acp/dialog.js";

/** A program of the user's that speaks the Agent Client Protocol, version 1, on its stdin and stdout. */
export function acpAgent(command: readonly string[]): AgentDriver {
  return {
    name: "acp",
    // The protocol has a place for the cost; nobody has to fill it in.
    reportsCost: false,
    cannot: ["tools"],
    network: [],
    secrets: [],
    startsMcp: true,
    installHint: "or put it into the repository",
    command: () => ({ argv: command, stdin: "" }),
    reader: () => {
      throw new TypeError("an agent that speaks ACP is talked with");
    },
    dialog: (request, host) => new AcpDialog(request, host),
  };
}

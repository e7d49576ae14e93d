import { UsageError } from "../commands.js";
import type { Invocation } from "../invocation.js";
import { installServer } from "../mcp/install-server.js";
import { serveClients } from "../mcp/serve-clients.js";

const OF_INSTALL = ["client", "scope", "as", "remove", "print", "dry-run"] as const;

/** `glovebox mcp`: serves a sandbox to models, or tells a client about this server. */
export async function run(invocation: Invocation): Promise<number> {
  const { flags, operands } = invocation;
  const [what] = operands;
  if (what === "install") return await installServer(invocation);
  if (what !== undefined) throw new UsageError(`mcp does not take "${what}"`, "glovebox mcp, or glovebox mcp install");
  const stray = OF_INSTALL.find((name) => flags.has(name));
  if (stray !== undefined) throw new UsageError(`--${stray} needs install`, "glovebox mcp install --client <name>");
  return await serveClients(invocation);
}

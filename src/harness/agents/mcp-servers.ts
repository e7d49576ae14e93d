import type { AgentRequest } from "../types.js";

/** A server as most programs want it in their `mcpServers`. */
export interface McpEntry {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/**
 * The MCP servers of a request for an `mcpServers` in JSON; undefined when there are none. `refer` writes what stands for the value of a variable there,
 * for a program that does not pass all of its own variables on; `more` is what each entry has besides.
 */
export function toMcpServers(
  { mcp = {}, secretNames = [] }: Pick<AgentRequest, "mcp" | "secretNames">,
  { refer, more = {} }: { refer?: (name: string) => string; more?: object } = {},
): Record<string, McpEntry> | undefined {
  const referred = refer === undefined ? {} : Object.fromEntries(secretNames.map((name) => [name, refer(name)]));
  const servers = Object.entries(mcp).map(
    ([
      name,
      {
        command: [program = "", ...args],
        env = {},
      },
    ]) => {
      const entry: McpEntry = { command: program, args, env: { ...referred, ...env }, ...more };
      return [name, entry] as const;
    },
  );
  return servers.length === 0 ? undefined : Object.fromEntries(servers);
}

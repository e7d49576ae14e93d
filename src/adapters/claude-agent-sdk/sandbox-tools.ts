import type { McpSdkServerConfigWithInstance, SdkMcpToolDefinition } from "@anthropic-ai/claude-agent-sdk";
import type { Sandbox } from "../../../contracts/sandbox.js";
import { type AgentTool, createAgentTools, type ToolOptions } from "../agent-tools.js";
import { importFramework } from "../import-framework.js";

const sdk = await importFramework("@anthropic-ai/claude-agent-sdk", () => import("@anthropic-ai/claude-agent-sdk"));
const { z } = await importFramework("zod", () => import("zod"));

const SERVER = "glovebox";

/** The tools of Claude Code that act on this machine, and ours that take their names. The others have no place in a sandbox, and are off. */
const ALIASES = { Bash: "bash", Read: "read", Write: "write", Edit: "edit" };
const OFF = [
  "Bash",
  "BashOutput",
  "KillShell",
  "Read",
  "Write",
  "Edit",
  "MultiEdit",
  "NotebookEdit",
  "Glob",
  "Grep",
  "LS",
];

/** Options of `query` by which the tools act in a sandbox. */
export interface SandboxToolSettings {
  mcpServers: Record<string, McpSdkServerConfigWithInstance>;
  tools: string[];
  toolAliases: Record<string, string>;
  allowedTools: string[];
  disallowedTools: string[];
}

/**
 * Makes options for `query` by which Claude Code stays outside and its tools act in the sandbox: `bash`, `read`, `write` and `edit`, under the names
 * that the model knows. The tools of Claude Code itself, which would act on this machine, are off.
 */
export function createSandboxTools(sandbox: Sandbox, options: ToolOptions = {}): SandboxToolSettings {
  const { bash, read, write, edit } = createAgentTools(sandbox, options);
  const path = z.string().describe("Absolute, or relative to the work directory.");
  const tools = [
    define("bash", bash, { command: z.string(), timeout_ms: z.number().optional() }),
    define("read", read, { path, start_line: z.number().optional(), max_lines: z.number().optional() }),
    define("write", write, { path, content: z.string() }),
    define("edit", edit, { path, old: z.string(), new: z.string(), all: z.boolean().optional() }),
  ];
  const named = Object.entries(ALIASES).map(([name, own]): [string, string] => [name, `mcp__${SERVER}__${own}`]);
  return {
    mcpServers: { [SERVER]: sdk.createSdkMcpServer({ name: SERVER, tools }) },
    tools: [],
    toolAliases: Object.fromEntries(named),
    allowedTools: named.map(([, own]) => own),
    disallowedTools: OFF,
  };
}

function define(
  name: string,
  { description, run }: Pick<AgentTool<unknown>, "description" | "run">,
  shape: object,
): SdkMcpToolDefinition {
  return sdk.tool(name, description, shape, async (input: unknown, extra: unknown) => {
    const { signal } = extra as { signal?: AbortSignal };
    return { content: [{ type: "text", text: await run(input, signal) }] };
  });
}

import type { AgentRequest } from "../../types.js";
import { asRecord, type Untrusted } from "../json-line.js";
import { type McpEntry, toMcpServers } from "../mcp-servers.js";
import { RPC_CODES } from "./rpc.js";

const OURS = { name: "glovebox", version: "1" };

/** What differs between the versions of the protocol before a session is prompted. A text says why something can't be done. */
export interface AcpVersion {
  readonly number: number;
  /** What the client says first. */
  readonly hello: object;
  /** The method that continues a session, by what the agent can do. */
  continuing(agent: Untrusted): string | undefined;
  /** The servers of a request as the agent wants them. */
  servers(request: AgentRequest, agent: Untrusted): object[] | string;
  /** Whether the agent has ended its work when it answers a prompt; else it says so by an update. */
  readonly endsByAnswer: boolean;
}

/** The version that nearly all agents speak. */
export const V1: AcpVersion = {
  number: 1,
  hello: {
    protocolVersion: 1,
    clientCapabilities: { fs: { readTextFile: true, writeTextFile: true }, terminal: true },
    clientInfo: OURS,
  },
  continuing(agent) {
    const can = asRecord(agent["agentCapabilities"]) ?? {};
    if (asRecord(asRecord(can["sessionCapabilities"])?.["resume"]) !== undefined) return "session/resume";
    return can["loadSession"] === true ? "session/load" : undefined;
  },
  servers: (request) => serversOf(request),
  endsByAnswer: true,
};

/** The draft of the next version. Its agents work with the files and processes of the sandbox by themselves. */
export const V2: AcpVersion = {
  number: 2,
  hello: { protocolVersion: 2, info: OURS, capabilities: {} },
  continuing: () => "session/resume",
  servers(request, agent) {
    const servers = serversOf(request).map((server) => ({ type: "stdio", ...server }));
    const session = asRecord(asRecord(agent["capabilities"])?.["session"]);
    const isStarted = asRecord(asRecord(session?.["mcp"])?.["stdio"]) !== undefined;
    return servers.length === 0 || isStarted ? servers : "it starts no MCP servers, which the node declares";
  },
  endsByAnswer: false,
};

/** Whether an agent that answers version 1 in this way may speak version 2: it says so, or it does not understand what the client said. */
export function mayBeV2(answer: { result?: Untrusted; error?: Untrusted }): boolean {
  if (answer.error === undefined) return answer.result?.["protocolVersion"] === V2.number;
  const { unsupportedVersion, invalidParams, invalidRequest } = RPC_CODES;
  return [unsupportedVersion, invalidParams, invalidRequest].includes(answer.error["code"] as never);
}

/** The protocol wants the absolute path of a program, which nobody knows outside; `env` finds it. */
function serversOf(request: AgentRequest): object[] {
  return Object.entries(toMcpServers(request) ?? {}).map(([name, { command, args, env }]: [string, McpEntry]) => ({
    name,
    ...(command.startsWith("/") ? { command, args } : { command: "/usr/bin/env", args: [command, ...args] }),
    env: Object.entries(env).map(([key, value]) => ({ name: key, value })),
  }));
}

/** What the tests use of Mastra, the OpenAI Agents SDK and the Claude Agent SDK, beside what the adapters declare of them. */

declare module "@mastra/core/agent" {
  export class Agent {
    constructor(options: object);
    generate(prompt: string, options?: object): Promise<{ text: string }>;
  }
}

declare module "@mastra/core/workspace" {
  export class Workspace {
    constructor(options: { filesystem?: MastraFilesystem; sandbox?: MastraSandbox });
  }
}

declare module "@openai/agents-core" {
  interface RunResult {
    finalOutput?: string;
    interruptions: object[];
    state: RunState;
  }
  export class RunState {
    static fromString(agent: object, text: string): Promise<RunState>;
    getInterruptions(): object[];
    approve(item: object): void;
  }
  export function run(agent: object, input: string | RunState, options?: object): Promise<RunResult>;
  export function setTracingDisabled(isDisabled: boolean): void;
  export function tool(options: object): object;
}

declare module "@openai/agents-core/sandbox" {
  export class SandboxAgent {
    constructor(options: object);
  }
}

declare module "@openai/agents-core/testing" {
  export class ScriptedModel {
    constructor(turns: readonly object[]);
    readonly lastCall?: { request: { input: string | object[] } };
  }
  export function assistantMessage(text: string): object;
  export function functionCall(name: string, input: object, options: { callId: string }): object;
}

declare module "@anthropic-ai/claude-agent-sdk" {
  export interface Options {
    abortController?: AbortController;
    cwd?: string;
    env?: Record<string, string | undefined>;
    model?: string;
    permissionMode?: string;
    allowDangerouslySkipPermissions?: boolean;
    settingSources?: string[];
    persistSession?: boolean;
    spawnClaudeCodeProcess?: (options: SpawnOptions) => SpawnedProcess;
  }
  export interface SDKMessage {
    type: string;
  }
  export function query(request: { prompt: string; options?: Options }): AsyncGenerator<SDKMessage>;
}

/** What the adapter uses of the Claude Agent SDK, which is not installed here. `npm run test:adapters` compiles against the real one. */
declare module "@anthropic-ai/claude-agent-sdk" {
  export interface SpawnOptions {
    command: string;
    args: string[];
    cwd?: string;
    env: Record<string, string | undefined>;
    signal: AbortSignal;
  }
  export interface SpawnedProcess {
    stdin: import("node:stream").Writable;
    stdout: import("node:stream").Readable;
    readonly killed: boolean;
    readonly exitCode: number | null;
    kill(signal: NodeJS.Signals): boolean;
    on(event: "exit", listener: (code: number | null, signal: NodeJS.Signals | null) => void): void;
    on(event: "error", listener: (error: Error) => void): void;
    once(event: "exit", listener: (code: number | null, signal: NodeJS.Signals | null) => void): void;
    once(event: "error", listener: (error: Error) => void): void;
    off(event: "exit", listener: (code: number | null, signal: NodeJS.Signals | null) => void): void;
    off(event: "error", listener: (error: Error) => void): void;
  }
  export interface McpSdkServerConfigWithInstance {
    type: "sdk";
    name: string;
    // biome-ignore lint/suspicious/noExplicitAny: an McpServer of another package.
    instance: any;
  }
  export interface SdkMcpToolDefinition {
    name: string;
    description: string;
  }
  export function tool(
    name: string,
    description: string,
    inputSchema: object,
    handler: (args: unknown, extra: unknown) => Promise<{ content: { type: "text"; text: string }[] }>,
  ): SdkMcpToolDefinition;
  export function createSdkMcpServer(options: {
    name: string;
    tools?: SdkMcpToolDefinition[];
  }): McpSdkServerConfigWithInstance;
}

declare module "zod" {
  interface Text {
    describe(text: string): Text;
    optional(): object;
  }
  export const z: { string(): Text; number(): Text; boolean(): Text };
}

/** What the tests use of the frameworks, beside what src/adapters/frameworks.d.ts has. */

declare module "ai";
declare module "ai/test";
declare module "langchain";
declare module "@langchain/core/messages";
declare module "@langchain/langgraph/prebuilt";

declare module "@ai-sdk/harness" {
  namespace HarnessCapabilityUnsupportedError {
    function isInstance(error: unknown): boolean;
  }
}

declare module "@computesdk/provider" {
  export function createCompute(options: { defaultProvider: Provider }): object;
}

declare module "@langchain/core/tools" {
  export class StructuredTool {}
}

declare module "deepagents" {
  export function createDeepAgent(options: { model: object; backend: BaseSandbox }): {
    invoke(input: { messages: string }, options?: { signal: AbortSignal }): Promise<{ messages: object[] }>;
  };
  interface BaseSandbox {
    write(path: string, content: string): Promise<object>;
    edit(path: string, old: string, replacement: string): Promise<object>;
    read(path: string): Promise<{ content?: string | Uint8Array }>;
  }
  namespace SandboxError {
    function isInstance(error: unknown): boolean;
  }
}

declare module "@google/adk" {
  interface BaseEnvironment {
    readonly isInitialized: boolean;
  }
  export abstract class BaseLlm {
    constructor(options: { model: string });
  }
  export class LlmAgent {
    constructor(options: { name: string; model: BaseLlm; tools: FunctionTool[] });
  }
  export class FunctionTool {
    constructor(options: {
      name: string;
      description: string;
      parameters: object;
      execute: (input: { command: string }) => Promise<object>;
    });
  }
  interface Event {
    content?: { parts?: { text?: string }[] };
  }
  export class InMemoryRunner {
    constructor(options: { agent: LlmAgent; appName: string });
    readonly sessionService: { createSession(options: { appName: string; userId: string }): Promise<{ id: string }> };
    runAsync(options: { userId: string; sessionId: string; newMessage: object }): AsyncIterable<Event>;
  }
}

declare module "@langchain/core/language_models/chat_models" {
  export abstract class BaseChatModel {
    constructor(fields: object);
    invoke(input: string): Promise<object>;
  }
}

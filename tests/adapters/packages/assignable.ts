import type { HarnessV1SandboxProvider } from "@ai-sdk/harness";
import { query } from "@anthropic-ai/claude-agent-sdk";
import { createCompute } from "@computesdk/provider";
import { type BaseEnvironment, LlmAgent } from "@google/adk";
import { Workspace, type WorkspaceFilesystem, type WorkspaceSandbox } from "@mastra/core/workspace";
import { run } from "@openai/agents-core";
import { SandboxAgent } from "@openai/agents-core/sandbox";
import { type Experimental_SandboxSession, generateText, type ToolSet } from "ai";
import { createDeepAgent, type SandboxBackendProtocolV2 } from "deepagents";
import type { Sandbox } from "glovebox";
import { GloveboxCodeExecutor, GloveboxEnvironment } from "glovebox/adk";
import { createSandboxTools as aiSdkTools, createSandboxProvider, createSandboxSession } from "glovebox/ai-sdk";
import { createSandboxTools as claudeTools, spawnInSandbox } from "glovebox/claude-agent-sdk";
import { glovebox } from "glovebox/computesdk";
import { GloveboxSandbox } from "glovebox/deepagents";
import { createSandboxTools as langchainTools } from "glovebox/langchain";
import { GloveboxFilesystem, GloveboxSandbox as MastraSandbox } from "glovebox/mastra";
import { GloveboxSandboxClient } from "glovebox/openai-agents";
import { createAgent } from "langchain";

/** What the adapters make is what the frameworks take: this compiles with the types of both. */
declare const sandbox: Sandbox;

export const session: Experimental_SandboxSession = createSandboxSession(sandbox);
export const tools: ToolSet = aiSdkTools(sandbox);
export const provider: HarnessV1SandboxProvider = createSandboxProvider({ backend: "docker", publish: [4319] });
export const text = generateText({
  model: "some/model",
  tools: aiSdkTools(sandbox, { timeout: 1000 }),
  prompt: "",
  experimental_sandbox: session,
}).then(({ toolResults }) => toolResults.map(({ output }) => output));

export const backend: SandboxBackendProtocolV2 = new GloveboxSandbox({ backend: "docker", timeout: 1000 });
export const deepAgent = createDeepAgent({ backend: new GloveboxSandbox({ sandbox }) });
export const listed = new GloveboxSandbox().ls("/").then(({ files }) => files?.map(({ path }) => path));

export const compute = createCompute({ defaultProvider: glovebox({ backend: "docker" }) });
export const created = compute.sandbox.create().then((each) => each.runCommand("true", { timeout: 1000 }));

export const environment: BaseEnvironment = new GloveboxEnvironment({ sandbox });
export const adkAgent = new LlmAgent({ name: "a", codeExecutor: new GloveboxCodeExecutor({ timeoutSeconds: 1 }) });

export const agent = createAgent({ model: "some:model", tools: langchainTools(sandbox) });

export const outside = query({ prompt: "", options: { ...claudeTools(sandbox, { timeout: 1000 }) } });
export const inside = query({ prompt: "", options: { spawnClaudeCodeProcess: spawnInSandbox(sandbox) } });

export const mastra = new MastraSandbox({
  backend: "docker",
  timeout: 1000,
  onStart: ({ sandbox: { id } }) => void id,
});
export const asSandbox: WorkspaceSandbox = mastra;
export const named = new MastraSandbox({
  instructions: ({ defaultInstructions, requestContext }) => `${defaultInstructions} ${requestContext?.get("user")}`,
});
export const files: WorkspaceFilesystem = new GloveboxFilesystem({ sandbox: mastra });
export const workspace = new Workspace({ sandbox: mastra, filesystem: new GloveboxFilesystem({ sandbox: mastra }) });

export const ran = run(new SandboxAgent({ name: "a" }), "", {
  sandbox: { client: new GloveboxSandboxClient({ backend: "docker", exposedPorts: [80] }) },
});

// @ts-expect-error: the types are not any.
createSandboxSession(7);
// @ts-expect-error: the types are not any.
new GloveboxSandbox({ timeout: "long" });
// @ts-expect-error: the types are not any.
new GloveboxCodeExecutor({ timeoutSeconds: "long" });
// @ts-expect-error: the types are not any.
glovebox({ backend: 7 });
// @ts-expect-error: the types are not any.
langchainTools(sandbox, { timeout: "long" });
// @ts-expect-error: the types are not any.
new MastraSandbox({ timeout: "long" });
// @ts-expect-error: the types are not any.
new GloveboxSandboxClient({ exposedPorts: 80 });
// @ts-expect-error: the types are not any.
spawnInSandbox(7);
// @ts-expect-error: the types are not any.
claudeTools(sandbox, { timeout: "long" });

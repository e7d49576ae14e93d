import type { HarnessV1SandboxProvider } from "@ai-sdk/harness";
import { createCompute } from "@computesdk/provider";
import { type BaseEnvironment, LlmAgent } from "@google/adk";
import { type Experimental_SandboxSession, generateText, type ToolSet } from "ai";
import { createDeepAgent, type SandboxBackendProtocolV2 } from "deepagents";
import type { Sandbox } from "glovebox";
import { GloveboxCodeExecutor, GloveboxEnvironment } from "glovebox/adk";
import { createSandboxTools as aiSdkTools, createSandboxProvider, createSandboxSession } from "glovebox/ai-sdk";
import { glovebox } from "glovebox/computesdk";
import { GloveboxSandbox } from "glovebox/deepagents";
import { createSandboxTools as langchainTools } from "glovebox/langchain";
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

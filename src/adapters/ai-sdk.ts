export { createSandboxProvider, type HarnessProvider, type ProviderOptions } from "./ai-sdk/provider.js";
export { type AiSdkSessionOptions, createSandboxSession } from "./ai-sdk/session.js";
export { type AiSdkTool, type AiSdkTools, createSandboxTools } from "./ai-sdk/tools.js";
export type { AiSdkNetworkPolicy, AiSdkNetworkSession, AiSdkProcess, AiSdkSession } from "./ai-sdk/types.js";

export { GloveboxSandboxClient, type GloveboxSandboxClientOptions } from "./openai-agents/glovebox-sandbox-client.js";
export { GloveboxSandboxSession } from "./openai-agents/glovebox-sandbox-session.js";
export type { GloveboxSandboxSessionState } from "./openai-agents/session-state.js";

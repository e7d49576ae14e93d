export { GloveboxFilesystem, type GloveboxFilesystemOptions } from "./mastra/glovebox-filesystem.js";
export { GloveboxProcessManager, type GloveboxSpawnOptions } from "./mastra/glovebox-process-manager.js";
export { GloveboxSandbox, type GloveboxSandboxOptions } from "./mastra/glovebox-sandbox.js";

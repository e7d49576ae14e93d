import { importFramework } from "../import-framework.js";

/** Mastra's workspace, whose base classes the adapter extends. */
export const mastra: typeof import("@mastra/core/workspace") = await importFramework(
  "@mastra/core",
  async () => await import("@mastra/core/workspace"),
);

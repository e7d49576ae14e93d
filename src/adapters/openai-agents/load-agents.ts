import { importFramework } from "../import-framework.js";

const PACKAGE = "@openai/agents-core";

/** The Agents SDK: how diffs are applied, and its errors. */
export const agents: typeof import("@openai/agents-core") = await importFramework(
  PACKAGE,
  async () => await import("@openai/agents-core"),
);

/** The Agents SDK's own sandboxes: manifests, path rules, errors. */
export const sandboxes: typeof import("@openai/agents-core/sandbox") = await importFramework(
  PACKAGE,
  async () => await import("@openai/agents-core/sandbox"),
);

/** What the SDK shares with the clients of its own extensions. */
export const internal: typeof import("@openai/agents-core/sandbox/internal") = await importFramework(
  PACKAGE,
  async () => await import("@openai/agents-core/sandbox/internal"),
);

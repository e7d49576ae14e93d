import type { StructuredToolInterface } from "@langchain/core/tools";
import type { Sandbox } from "../../contracts/sandbox.js";
import { toJsonSchema } from "../util/schema.js";
import { createAgentTools, type ToolOptions } from "./agent-tools.js";
import { importFramework } from "./import-framework.js";

const { tool } = await importFramework("@langchain/core", () => import("@langchain/core/tools"));

/**
 * Makes the tools `bash`, `read`, `write` and `edit` of a sandbox, for `createAgent`, a `ToolNode` and everything else that takes tools of LangChain.
 * They return text, and follow the signal of the run. The sandbox stays yours.
 */
export function createSandboxTools(sandbox: Sandbox, options: ToolOptions = {}): StructuredToolInterface[] {
  return Object.entries(createAgentTools(sandbox, options)).map(([name, { description, input, run }]) =>
    tool(async (given, { signal }) => await run(given, signal), { name, description, schema: toJsonSchema(input) }),
  );
}

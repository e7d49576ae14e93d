import { StructuredToolInterface } from "@langchain/core/tools";

interface ToolOptions {
  timeout?: number;
  maxOutput?: number;
}

declare function createSandboxTools(sandbox: Sandbox, options?: ToolOptions): StructuredToolInterface[];

export { createSandboxTools };

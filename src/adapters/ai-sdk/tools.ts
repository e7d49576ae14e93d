import type { Sandbox } from "../../../contracts/sandbox.js";
import { findFaults, toJsonSchema } from "../../util/schema.js";
import {
  type AgentTool,
  type BashInput,
  createAgentTools,
  type EditInput,
  type ReadInput,
  type ToolOptions,
  type WriteInput,
} from "../agent-tools.js";

/** A schema in the form of standardschema.dev, which the AI SDK and others read. */
export interface StandardSchema<I> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => { value: I } | { issues: { message: string; path: (string | number)[] }[] };
    readonly jsonSchema: {
      readonly input: (options: { target: string }) => Record<string, unknown>;
      readonly output: (options: { target: string }) => Record<string, unknown>;
    };
    readonly types?: { readonly input: I; readonly output: I };
  };
}

/** A tool of the AI SDK. */
export interface AiSdkTool<I> {
  readonly description: string;
  readonly inputSchema: StandardSchema<I>;
  readonly execute: (input: I, options: { abortSignal?: AbortSignal | undefined }) => Promise<string>;
}

/** The tools of a sandbox, for the option `tools` of `generateText` and `streamText`. */
export type AiSdkTools = {
  readonly bash: AiSdkTool<BashInput>;
  readonly read: AiSdkTool<ReadInput>;
  readonly write: AiSdkTool<WriteInput>;
  readonly edit: AiSdkTool<EditInput>;
};

/** Makes the tools `bash`, `read`, `write` and `edit` of a sandbox. They return text, and follow the call's `abortSignal`. */
export function createSandboxTools(sandbox: Sandbox, options: ToolOptions = {}): AiSdkTools {
  const { bash, read, write, edit } = createAgentTools(sandbox, options);
  return { bash: toTool(bash), read: toTool(read), write: toTool(write), edit: toTool(edit) };
}

function toTool<I>({ description, input, run }: AgentTool<I>): AiSdkTool<I> {
  const print = (): Record<string, unknown> => toJsonSchema(input) as Record<string, unknown>;
  return {
    description,
    inputSchema: {
      "~standard": {
        version: 1,
        vendor: "glovebox",
        validate(value) {
          const faults = findFaults(value, input);
          if (faults.length === 0) return { value: value as I };
          return { issues: faults.map(({ place, message }) => ({ message, path: [...place] })) };
        },
        jsonSchema: { input: print, output: print },
      },
    },
    execute: async (given, { abortSignal }) => await run(given, abortSignal),
  };
}

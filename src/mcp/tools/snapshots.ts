import { SandboxError } from "../../../contracts/errors.js";
import * as is from "../../util/schema.js";
import { CHANGES, defineTool, type Tool, type ToolHints } from "../tool.js";
import type { ToolParts } from "../tool-parts.js";
import { fieldsOf } from "./sandboxes.js";

const ADDS: ToolHints = { readOnly: false, destructive: false, idempotent: false, openWorld: false };
const SNAPSHOT_FIELDS: is.JsonSchema = {
  type: "object",
  required: ["snapshot_id"],
  properties: { snapshot_id: { type: "string" } },
};

/** The tools that save and bring back files; with several sandboxes also `fork`. */
export function snapshotTools({ options, sandboxes }: ToolParts): Tool[] {
  const own = new Map<string, Set<string>>();
  const snapshots: Tool[] = [
    defineTool<object>({
      name: "snapshot",
      title: "Save the files",
      description: "Save the files of the work directory. restore brings them back.",
      input: is.object<object>({}),
      output: SNAPSHOT_FIELDS,
      isText: false,
      hints: ADDS,
      usesSandbox: true,
      async run(_, call) {
        const id = await (await call.sandbox()).snapshot({ signal: call.signal });
        own.set(call.owner, (own.get(call.owner) ?? new Set()).add(id));
        return { text: `snapshot_id ${id}`, fields: { snapshot_id: id } };
      },
    }),
    defineTool<{ snapshot_id: string }>({
      name: "restore",
      title: "Bring files back",
      description: "Reset the files of the work directory to a snapshot that you made. Later changes are lost.",
      input: is.object<{ snapshot_id: string }>({ snapshot_id: is.required(is.text) }),
      output: SNAPSHOT_FIELDS,
      isText: false,
      hints: { ...CHANGES, idempotent: true },
      usesSandbox: true,
      async run({ snapshot_id: id }, call) {
        if (own.get(call.owner)?.has(id) !== true) throw unknown(id);
        await (await call.sandbox()).restore(id);
        return { text: `restored ${id}`, fields: { snapshot_id: id } };
      },
    }),
  ];
  if (options.multi !== true) return snapshots;
  return [
    ...snapshots,
    defineTool<object>({
      name: "fork",
      title: "Fork a sandbox",
      description: "Make another sandbox with the same files as they are now. Answers with its sandbox_id.",
      input: is.object<object>({}),
      output: {
        type: "object",
        required: ["sandbox_id"],
        properties: { sandbox_id: { type: "string" }, work_dir: { type: "string" } },
      },
      isText: false,
      hints: ADDS,
      usesSandbox: true,
      async run(_, call) {
        const sandbox = await call.sandbox();
        sandboxes.assertRoom(call.owner);
        const fork = await sandbox.fork();
        sandboxes.adopt(call.owner, fork);
        return { text: `sandbox_id ${fork.id}\nwork directory ${fork.workDir}`, fields: fieldsOf(fork) };
      },
    }),
  ];
}

function unknown(id: string): SandboxError {
  return new SandboxError("not_found", `There is no snapshot "${id}" of yours`, {
    hint: "snapshot makes one and names it",
  });
}

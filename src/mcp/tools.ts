import type { ToolGroup } from "./options.js";
import { ShownSoFar } from "./read-output.js";
import type { Tool } from "./tool.js";
import type { ToolParts } from "./tool-parts.js";
import { browseTools } from "./tools/browse.js";
import { execTool } from "./tools/exec.js";
import { fileEditTool } from "./tools/file-edit.js";
import { fileReadTool } from "./tools/file-read.js";
import { fileWriteTool } from "./tools/file-write.js";
import { gitTools } from "./tools/git.js";
import { portTools } from "./tools/ports.js";
import { processTools } from "./tools/processes.js";
import { runTools } from "./tools/runs.js";
import { sandboxTools } from "./tools/sandboxes.js";
import { snapshotTools } from "./tools/snapshots.js";

/** Makes the tools that the options ask for, in the order in which clients see them. */
export function createTools(parts: ToolParts): Tool[] {
  const { options, style, runs, network } = parts;
  const { tools: wanted = [], multi = false } = options;
  const commands = { style, shown: new ShownSoFar(), network };
  const group = (name: ToolGroup, make: () => Tool[]): Tool[] => (wanted.includes(name) ? make() : []);
  return [
    execTool(commands),
    ...processTools(commands),
    fileReadTool(style),
    fileWriteTool(),
    fileEditTool(style),
    ...(multi ? sandboxTools(parts) : []),
    ...group("browse", () => browseTools(style)),
    ...group("git", () => gitTools(parts)),
    ...group("snapshot", () => snapshotTools(parts)),
    ...group("ports", portTools),
    ...(runs === undefined ? [] : runTools(runs, style)),
  ];
}

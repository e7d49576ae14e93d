import { listSandboxes, type SandboxInfo } from "../../sandbox.js";
import { toInertLine } from "../../util/inert-text.js";
import type { Invocation } from "../invocation.js";
import { formatTable } from "../terminal.js";

/** `glovebox ls`. */
export async function run({ flags, screen }: Invocation): Promise<number> {
  const sandboxes = await listSandboxes();
  if (flags.has("json")) await screen.printJson(sandboxes);
  else if (flags.has("quiet")) await screen.print(sandboxes.map(({ id }) => `${id}\n`).join(""));
  else if (sandboxes.length === 0) await screen.printNote("there are no sandboxes");
  else {
    const rows = sandboxes.map((sandbox) => [
      sandbox.id,
      useOf(sandbox),
      ...[sandbox.backend, sandbox.createdAt, sandbox.workDir].map((cell) => toInertLine(cell ?? "")),
    ]);
    const head = ["ID", "STATE", "BACKEND", "CREATED", "DIRECTORY"].map(screen.style.bold);
    await screen.print(formatTable([head, ...rows]));
  }
  return 0;
}

function useOf({ state, alive }: SandboxInfo): string {
  if (state === "damaged") return "damaged";
  if (alive) return "in use";
  return state === "kept" ? "kept" : "left over";
}

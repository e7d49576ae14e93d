import { createInterface } from "node:readline";
import { toInertLine } from "../../util/inert-text.js";
import type { Screen } from "./screen.js";

/** Asks a question on a terminal; anything but y or yes is no. Undefined if there is no terminal to ask on. */
export async function askYesNo(question: string, screen: Screen, signal: AbortSignal): Promise<boolean | undefined> {
  if (process.stdin.isTTY !== true || screen.stderr.isTTY !== true) return undefined;
  const lines = createInterface({ input: process.stdin, terminal: false });
  try {
    await screen.write(screen.stderr, `${toInertLine(question)} [y/N] `);
    return await new Promise<boolean>((resolve) => {
      lines.once("line", (line) => resolve(/^\s*y(es)?\s*$/i.test(line)));
      lines.once("close", () => resolve(false));
      signal.addEventListener("abort", () => resolve(false), { once: true });
    });
  } finally {
    lines.close();
  }
}

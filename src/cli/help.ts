import { findCommand } from "./find-command.js";
import { commandHelp, generalHelp } from "./help-text.js";
import type { Invocation } from "./invocation.js";

/** `glovebox help [verb]`. */
export async function run({ operands: [verb], screen }: Invocation): Promise<number> {
  await screen.print(verb === undefined ? generalHelp(screen.style) : commandHelp(findCommand(verb), screen.style));
  return 0;
}

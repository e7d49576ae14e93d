import { COMMANDS, commandHelp, findCommand, generalHelp } from "../commands.js";
import type { Invocation } from "../invocation.js";

/** `glovebox help [verb]`. */
export async function run({ operands: [verb], flags, screen }: Invocation): Promise<number> {
  if (flags.has("json")) {
    await screen.printJson(verb === undefined ? COMMANDS : findCommand(verb));
    return 0;
  }
  await screen.print(verb === undefined ? generalHelp(screen.style) : commandHelp(findCommand(verb), screen.style));
  return 0;
}

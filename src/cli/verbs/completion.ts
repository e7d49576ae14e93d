import { backendNames } from "../../sandbox.js";
import { type CliCommand, COMMANDS, parseWord } from "../commands.js";
import type { Invocation } from "../invocation.js";
import { bashCompletion } from "./completion/bash.js";
import { fishCompletion } from "./completion/fish.js";
import { zshCompletion } from "./completion/zsh.js";

const SCRIPTS = { bash: bashCompletion, zsh: zshCompletion, fish: fishCompletion };

/** `glovebox completion bash|zsh|fish`. */
export async function run({ operands: [name = ""], flags, screen }: Invocation): Promise<number> {
  const shell = parseWord("completion", name, ["bash", "zsh", "fish"]);
  const script = SCRIPTS[shell](COMMANDS.map(withNames));
  await (flags.has("json") ? screen.printJson({ shell, script }) : screen.print(script));
  return 0;
}

/** Fills in the names that the command table itself can't have: the backends and the verbs. */
function withNames(command: CliCommand): CliCommand {
  const flags = command.flags.map((flag) => (flag.offers === "backends" ? { ...flag, offers: backendNames() } : flag));
  const offers = command.offers?.map((each) => (each === "backends" ? backendNames() : each));
  if (command.name !== "help") return { ...command, flags, ...(offers !== undefined && { offers }) };
  return { ...command, flags, offers: [COMMANDS.map(({ name }) => name)] };
}

import { toInertLine } from "../util/inert-text.js";
import type { Invocation } from "./invocation.js";
import { withKept } from "./kept-sandbox.js";

/** `glovebox export <id> <path inside> <host path>`. */
export async function run(invocation: Invocation): Promise<number> {
  const { operands, flags, screen } = invocation;
  const [id = "", inside = "", host = ""] = operands;
  const path = await withKept(invocation, id, `copying ${inside} out`, (sandbox) =>
    sandbox.exportDirectory(inside, host),
  );
  const shown = screen.stdout.isTTY === true ? toInertLine(path) : path;
  await (flags.has("json") ? screen.printJson({ sandbox: id, path }) : screen.print(`${shown}\n`));
  return 0;
}

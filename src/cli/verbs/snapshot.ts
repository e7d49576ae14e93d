import type { Invocation } from "../invocation.js";
import { withKept } from "../kept-sandbox.js";

/** `glovebox snapshot <id>`. */
export async function run(invocation: Invocation): Promise<number> {
  const { operands, flags, screen } = invocation;
  const [id = ""] = operands;
  const snapshot = await withKept(invocation, id, `saving ${id}`, (sandbox) => sandbox.snapshot());
  await (flags.has("json") ? screen.printJson({ snapshot, sandbox: id }) : screen.print(`${snapshot}\n`));
  return 0;
}

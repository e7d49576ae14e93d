import { findSandboxId } from "../find-id.js";
import type { Invocation } from "../invocation.js";
import { withKept } from "../kept-sandbox.js";

/** `glovebox snapshot <id>`. */
export async function run(invocation: Invocation): Promise<number> {
  const { operands, flags, screen } = invocation;
  const id = await findSandboxId(operands[0] ?? "");
  const name = flags.text("name");
  const named = name === undefined ? {} : { name };
  const snapshot = await withKept(invocation, id, `saving ${id}`, (sandbox) =>
    sandbox.snapshot({ ...named, signal: invocation.interruption.signal }),
  );
  await (flags.has("json") ? screen.printJson({ snapshot, ...named, sandbox: id }) : screen.print(`${snapshot}\n`));
  return 0;
}

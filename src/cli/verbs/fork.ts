import { parseCount } from "../commands.js";
import { findSandboxId } from "../find-id.js";
import type { Invocation } from "../invocation.js";
import { withKept } from "../kept-sandbox.js";

/** `glovebox fork <id>`: the copies are kept, like the sandbox itself. */
export async function run(invocation: Invocation): Promise<number> {
  const { operands, flags, screen } = invocation;
  const id = await findSandboxId(operands[0] ?? "");
  const count = parseCount("--count", flags.text("count") ?? "1");
  const forks = await withKept(invocation, id, `copying ${id}`, async (sandbox) => {
    const made = await sandbox.fork({ count });
    await Promise.all(made.map((fork) => fork.teardown()));
    return made.map((fork) => ({ id: fork.id, workDir: fork.workDir }));
  });
  if (flags.has("json")) await screen.printJson({ sandbox: id, forks });
  else await screen.print(forks.map((fork) => `${fork.id}\n`).join(""));
  return 0;
}

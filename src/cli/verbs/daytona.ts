import { buildSnapshot } from "../../sandbox/daytona.js";
import { toInertLine } from "../../util/inert-text.js";
import { UsageError } from "../commands.js";
import type { Invocation } from "../invocation.js";

/** `glovebox daytona snapshot <name>`. */
export async function run({ operands, flags, screen }: Invocation): Promise<number> {
  const [what, name = ""] = operands;
  if (what !== "snapshot")
    throw new UsageError(`daytona cannot do "${what}"`, "glovebox daytona snapshot harness-node22");
  const built = await screen.during(`building ${name}`, (progress) =>
    buildSnapshot(name, (line) => progress.tell(toInertLine(line))),
  );
  if (flags.has("json")) await screen.printJson({ name, built });
  else await screen.print(built ? `built ${name}\n` : `${name} is already there\n`);
  return 0;
}

import { backendOf, chooseBackend } from "../../sandbox.js";
import { toInertLine } from "../../util/inert-text.js";
import { UsageError } from "../commands.js";
import type { Invocation } from "../invocation.js";

/** `glovebox prepare <name> --backend <backend>`. */
export async function run({ operands, flags, screen }: Invocation): Promise<number> {
  const [name = ""] = operands;
  const backend = flags.text("backend") ?? chooseBackend(process.env);
  const { prepared } = await backendOf(backend);
  if (prepared === undefined) {
    throw new UsageError(
      `the ${backend} backend has no prepared snapshots`,
      "choose another one: glovebox prepare <name> --backend <backend>",
    );
  }
  const built = await screen.during(`building ${name}`, (progress) =>
    prepared.build(name, (line) => progress.update(toInertLine(line))),
  );
  if (flags.has("json")) await screen.printJson({ name, built });
  else await screen.print(built ? `built ${name}\n` : `${name} exists already\n`);
  return 0;
}

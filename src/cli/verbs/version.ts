import { ownVersion } from "../../util/own-version.js";
import type { Invocation } from "../invocation.js";

/** `glovebox version`. */
export async function run({ flags, screen }: Invocation): Promise<number> {
  const glovebox = ownVersion();
  if (flags.has("json")) {
    const { version: node, platform, arch } = process;
    await screen.printJson({ glovebox, node, platform, arch });
  } else await screen.print(`glovebox ${glovebox}\n`);
  return 0;
}

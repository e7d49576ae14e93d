import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Invocation } from "./invocation.js";

/** `glovebox version`. */
export async function run({ flags, screen }: Invocation): Promise<number> {
  const glovebox = ownVersion();
  if (flags.has("json")) {
    const { version: node, platform, arch } = process;
    await screen.printJson({ glovebox, node, platform, arch });
  } else await screen.print(`glovebox ${glovebox}\n`);
  return 0;
}

/** The version in the package that this file is a part of. */
export function ownVersion(): string {
  let directory = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(directory, "package.json"))) directory = dirname(directory);
  return (JSON.parse(readFileSync(join(directory, "package.json"), "utf8")) as { version: string }).version;
}

import { accessSync, constants, existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { SandboxError } from "../errors.js";

let found: string | undefined;

/** Path of the agent for this machine. */
export function agentBinary(): string {
  found ??= findAgent();
  return found;
}

function findAgent(): string {
  const name = join("agent", "bin", `linux-${process.arch}`, "glovebox-agent");
  let directory = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(directory, "package.json")) && dirname(directory) !== directory)
    directory = dirname(directory);
  const path = join(directory, name);
  try {
    accessSync(path, constants.X_OK);
  } catch (cause) {
    throw new SandboxError("missing_dependency", `the agent for linux-${process.arch} is not here: ${path}`, {
      cause,
      hint: "run `npm run build` in the checkout",
    });
  }
  return path;
}

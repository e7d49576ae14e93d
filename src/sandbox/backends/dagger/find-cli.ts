import { accessSync, constants, statSync } from "node:fs";
import { delimiter, isAbsolute, join } from "node:path";
import { SandboxError } from "../../../../contracts/errors.js";

/** The variable that names the program for Dagger's own SDKs. */
const CLI_VARIABLE = "_EXPERIMENTAL_DAGGER_CLI_BIN";

/** Path of the `dagger` program: the given one, otherwise the environment's, otherwise the first in PATH. Never downloaded. */
export function findCli(asked: string | undefined, env: NodeJS.ProcessEnv = process.env): string {
  const named = asked ?? (env[CLI_VARIABLE] || undefined);
  if (named !== undefined) {
    if (isProgram(named)) return named;
    const where = asked === undefined ? CLI_VARIABLE : "dagger.cli";
    throw new SandboxError("unavailable", `${where} is not a program: ${named}`, {
      backend: "dagger",
      retryable: false,
      hint: "set the absolute path of the dagger program",
    });
  }
  const found = (env["PATH"] ?? "")
    .split(delimiter)
    .filter(isAbsolute)
    .map((directory) => join(directory, "dagger"))
    .find(isProgram);
  if (found !== undefined) return found;
  throw new SandboxError("unavailable", "There is no Dagger session, and no dagger program in PATH to start one", {
    backend: "dagger",
    retryable: false,
    hint: "install the Dagger CLI (https://docs.dagger.io/install), or run under `dagger run`",
  });
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

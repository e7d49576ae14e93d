import { SandboxError } from "../../../../contracts/errors.js";
import { check, invalidArgument, object, port, required, type Schema, text } from "../../../util/schema.js";
import type { Endpoint } from "./start-cli.js";

/** `dagger.session`: both of port and token. */
export const session: Schema<{ port: number; token: string }> = object({
  port: required(port, "a port"),
  token: required(text),
});

/** The session that the environment names, as `dagger run` and Dagger itself do; undefined if it names none. */
export function sessionOf(env: NodeJS.ProcessEnv): Endpoint | undefined {
  const { DAGGER_SESSION_PORT: value, DAGGER_SESSION_TOKEN: token } = env;
  if (value === undefined || value === "") {
    if (token === undefined || token === "") return undefined;
    throw partial("DAGGER_SESSION_TOKEN", "DAGGER_SESSION_PORT");
  }
  if (!/^\d{1,5}$/.test(value)) throw invalidArgument("DAGGER_SESSION_PORT", "a whole number from 1 to 65535", value);
  check(Number(value), port, "DAGGER_SESSION_PORT");
  if (token === undefined || token === "") throw partial("DAGGER_SESSION_PORT", "DAGGER_SESSION_TOKEN");
  return { port: Number(value), token };
}

function partial(given: string, missing: string): SandboxError {
  return new SandboxError("unauthenticated", `${given} is set but ${missing} is not: a Dagger session needs both`, {
    backend: "dagger",
    hint: `set ${missing}, or unset ${given} to start a session with the dagger program`,
  });
}

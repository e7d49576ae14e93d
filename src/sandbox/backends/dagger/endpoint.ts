import { SandboxError } from "../../../../contracts/errors.js";
import { checkOptions, checkText, invalidArgument, type Shape, whole } from "../../../util/checks.js";
import type { Endpoint } from "./start-cli.js";

const port = whole(1, 65_535);
const shape: Shape = new Map([
  ["port", port],
  ["token", checkText],
]);

/** A check for `dagger.session`: it needs both port and token. */
export function checkSession(value: unknown, name: string): void {
  checkOptions(value, shape, name);
  const given = value as Partial<Endpoint>;
  if (given.port === undefined) throw invalidArgument(`${name}.port`, "a port", given.port);
  if (given.token === undefined) throw invalidArgument(`${name}.token`, "a non-empty string", given.token);
}

/** The session that the environment names, as `dagger run` and Dagger itself do; undefined if it names none. */
export function sessionOf(env: NodeJS.ProcessEnv): Endpoint | undefined {
  const { DAGGER_SESSION_PORT: text, DAGGER_SESSION_TOKEN: token } = env;
  if (text === undefined || text === "") {
    if (token === undefined || token === "") return undefined;
    throw partial("DAGGER_SESSION_TOKEN", "DAGGER_SESSION_PORT");
  }
  if (!/^\d{1,5}$/.test(text)) throw invalidArgument("DAGGER_SESSION_PORT", "a whole number from 1 to 65535", text);
  port(Number(text), "DAGGER_SESSION_PORT");
  if (token === undefined || token === "") throw partial("DAGGER_SESSION_PORT", "DAGGER_SESSION_TOKEN");
  return { port: Number(text), token };
}

function partial(given: string, missing: string): SandboxError {
  return new SandboxError("unauthenticated", `${given} is set but ${missing} is not: a Dagger session needs both`, {
    backend: "dagger",
    hint: `set ${missing}, or unset ${given} to start a session with the dagger program`,
  });
}

import { SandboxError } from "../../../../contracts/errors.js";
import { invalidArgument } from "../../../util/checks.js";
import {
  and,
  anything,
  custom,
  env,
  hostName,
  list,
  matching,
  object,
  type Parser,
  parser,
  path,
  port,
  record,
  required,
  type Schema,
  text,
  whole,
} from "../../../util/schema.js";
import type { DaggerOptions, SandboxOptions } from "../../types.js";
import { session } from "./endpoint.js";
import { HOST_ALIAS } from "./guest-call.js";

const URI = /^[a-z][a-z0-9+.-]*:\/\/./;
const LOOSE = ["baseDir", "workspace", "mounts"] as const;

const command: Schema<readonly string[]> = list(text, { minItems: 1 }, { minItems: "a program and its arguments" });

const serviceName = and(hostName, (value, name) => {
  if (value === HOST_ALIAS) throw invalidArgument(name, `other host names than ${HOST_ALIAS}`, value);
});

/** What is no URI may be the secret itself, and is not shown. */
const secret = custom<string>((value, name) => {
  if (typeof value === "string" && URI.test(value)) return;
  throw new SandboxError("invalid_argument", `Invalid ${name}: expected a URI such as env://NAME or file://PATH`, {
    hint: "a value goes into env instead: it is never a part of the graph",
  });
});

const schema: Schema<DaggerOptions> = object({
  cli: path,
  session,
  setup: list(command),
  services: record(object({ image: required(text), args: command, env, ports: list(port) }), serviceName),
  secrets: record(secret, matching(/^(?!GLOVEBOX_)[A-Za-z_][A-Za-z0-9_]*$/, "names of variables as keys")),
  linger: whole(0, 60_000),
  sdk: anything,
});

/** What only this backend knows of the options. */
export const daggerOptions: Parser<DaggerOptions> = parser(
  "dagger",
  and(schema, ({ cli, session: open }) => {
    if (cli === undefined || open === undefined) return;
    throw new SandboxError("invalid_argument", `Option dagger.cli ("${cli}") does not go together with dagger.session`);
  }),
);

/** Refuses what is wrong in the options of this backend, and what it has no place for. */
export function checkDaggerOptions(opts: SandboxOptions): DaggerOptions {
  const { dagger: given = {} } = opts;
  const dagger = daggerOptions.parse(given);
  for (const name of LOOSE) {
    if (opts[name] === undefined) continue;
    throw new SandboxError("unsupported", `The dagger backend cannot keep ${name}: its files are in the engine`, {
      hint: "bring files in with refreshFromHost, and out with exportDirectory",
    });
  }
  return dagger;
}

import { SandboxError } from "../../../../contracts/errors.js";
import * as is from "../../../util/schema.js";
import { invalidArgument, type Parser, parser, type Schema } from "../../../util/schema.js";
import type { SandboxOptions } from "../../types.js";
import type { DaggerOptions } from "./dagger-options.js";
import { session } from "./endpoint.js";
import { HOST_ALIAS } from "./guest-call.js";

const URI = /^[a-z][a-z0-9+.-]*:\/\/./;
const LOOSE = ["baseDir", "workspace", "mounts"] as const;

const command: Schema<readonly string[]> = is.list(
  is.text,
  { minItems: 1 },
  { minItems: "a program and its arguments" },
);

const serviceName = is.and(is.hostName, (value, name) => {
  if (value === HOST_ALIAS) throw invalidArgument(name, `other host names than ${HOST_ALIAS}`, value);
});

/** What is no URI may be the secret itself, and is not shown. */
const secret = is.custom<string>((value, name) => {
  if (typeof value === "string" && URI.test(value)) return;
  throw new SandboxError("invalid_argument", `Invalid ${name}: expected a URI such as env://NAME or file://PATH`, {
    hint: "a value goes into env instead: it is never a part of the graph",
  });
});

const schema: Schema<DaggerOptions> = is.object({
  cli: is.path,
  session,
  setup: is.list(command),
  services: is.record(
    is.object({ image: is.required(is.text), args: command, env: is.env, ports: is.list(is.port) }),
    serviceName,
  ),
  secrets: is.record(secret, is.matching(/^(?!GLOVEBOX_)[A-Za-z_][A-Za-z0-9_]*$/, "names of variables as keys")),
  linger: is.whole(0, 60_000),
  sdk: is.anything,
});

/** What only this backend knows of the options. */
export const daggerOptions: Parser<DaggerOptions> = parser(
  "dagger",
  is.and(schema, ({ cli, session: open }) => {
    if (cli === undefined || open === undefined) return;
    throw new SandboxError("invalid_argument", `Option dagger.cli ("${cli}") does not go together with dagger.session`);
  }),
);

/** Refuses options that an engine has no place for. */
export function checkNoPlace(opts: SandboxOptions): void {
  for (const name of LOOSE) {
    if (opts[name] === undefined) continue;
    throw new SandboxError("unsupported", `The dagger backend can't enforce ${name}: its files are in the engine`, {
      hint: "bring files in with refreshFromHost, and out with exportDirectory",
    });
  }
}

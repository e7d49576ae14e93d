import { SandboxError } from "../../../../contracts/errors.js";
import {
  arrayOf,
  type Check,
  checkEnv,
  checkHostName,
  checkOptions,
  checkPath,
  checkText,
  invalidArgument,
  type Shape,
  whole,
} from "../../../util/checks.js";
import type { SandboxOptions } from "../../types.js";
import type { DaggerOptions } from "./dagger-options.js";
import { checkSession } from "./endpoint.js";
import { HOST_ALIAS } from "./guest-call.js";

const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;
const URI = /^[a-z][a-z0-9+.-]*:\/\/./;
const LOOSE = ["baseDir", "workspace", "mounts"] as const;

const checkCommand: Check = (value, name) => {
  arrayOf(checkText)(value, name);
  if ((value as unknown[]).length === 0) throw invalidArgument(name, "a program and its arguments", value);
};

const serviceShape: Shape = new Map<string, Check>([
  ["image", checkText],
  ["args", checkCommand],
  ["env", checkEnv],
  ["ports", arrayOf(whole(1, 65_535))],
]);

const checkServices = entries((key, value, name) => {
  checkHostName(key, name);
  if (key === HOST_ALIAS) throw invalidArgument(name, `other host names than ${HOST_ALIAS}`, key);
  checkOptions(value, serviceShape, `${name}.${key}`);
  checkText((value as { image?: unknown }).image, `${name}.${key}.image`);
});

const checkSecrets = entries((key, value, name) => {
  if (!VARIABLE.test(key) || key.startsWith("GLOVEBOX_"))
    throw invalidArgument(name, "names of variables as keys", key);
  // What is no URI may be the secret itself, and is not shown.
  if (typeof value === "string" && URI.test(value)) return;
  throw new SandboxError(
    "invalid_argument",
    `Invalid ${name}.${key}: expected a URI such as env://NAME or file://PATH`,
    {
      hint: "a value goes into env instead: it is never a part of the graph",
    },
  );
});

const shape: Shape = new Map<string, Check>([
  ["cli", checkPath],
  ["session", checkSession],
  ["setup", arrayOf(checkCommand)],
  ["services", checkServices],
  ["secrets", checkSecrets],
  ["linger", whole(0, 60_000)],
  ["sdk", () => undefined],
]);

/** Checks what only this backend knows of the options. */
export function checkDaggerOptions(value: unknown): DaggerOptions {
  checkOptions(value, shape, "dagger");
  const dagger = value as DaggerOptions;
  if (dagger.session === undefined || dagger.cli === undefined) return dagger;
  throw new SandboxError(
    "invalid_argument",
    `Option dagger.cli ("${dagger.cli}") does not go together with dagger.session`,
  );
}

/** Refuses options that an engine has no place for. */
export function checkNoPlace(opts: SandboxOptions): void {
  for (const name of LOOSE) {
    if (opts[name] === undefined) continue;
    throw new SandboxError("unsupported", `The dagger backend can't enforce ${name}: its files are in the engine`, {
      hint: "bring files in with refreshFromHost, and out with exportDirectory",
    });
  }
}

function entries(check: (key: string, value: unknown, name: string) => void): Check {
  return (value, name) => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      throw invalidArgument(name, "an object", value);
    }
    for (const [key, entry] of Object.entries(value)) check(key, entry, name);
  };
}

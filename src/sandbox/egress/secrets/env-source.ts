import { SandboxError } from "../../../../contracts/errors.js";
import type { FetchedValue } from "./fetched-value.js";

/** Takes the value of a secret from a variable of this process; `unauthenticated` if it is not set. */
export function fetchFromEnv(name: string, variable: string): FetchedValue {
  const value = process.env[variable];
  if (value !== undefined && value !== "") return { value };
  const what = variable === name ? "its variable" : `the variable ${variable}`;
  throw new SandboxError("unauthenticated", `Secret ${name} has no value: ${what} is not set`, {
    hint: `export ${variable}=… first, or say where the value is: from: { file } or from: { command }`,
  });
}

import type { Finding } from "../../../sandbox.js";
import { TOKENS } from "../../token.js";

/** Sets of variables; one complete set is enough. */
type Credentials = readonly (readonly string[])[];

export const GITHUB: Credentials = TOKENS.map((name) => [name]);

/** Which credentials of a service are set. Shows names, never values. */
export function credentialFindings(sets: Credentials, env: Readonly<Record<string, string | undefined>>): Finding[] {
  if (sets.length === 0) return [];
  const complete = sets.find((names) => names.every((name) => env[name]));
  if (complete !== undefined) {
    return [
      { name: "credentials", status: "ok", detail: `${complete.join(", ")} ${complete.length > 1 ? "are" : "is"} set` },
    ];
  }
  const present = sets.flat().filter((name) => env[name]);
  const wanted = sets.map((names) => names.join(" with ")).join(", or ");
  const detail = present.length > 0 ? `only ${present.join(", ")} is set, which is not enough` : "none are set";
  return [{ name: "credentials", status: "unused", detail, fix: `set ${wanted}` }];
}

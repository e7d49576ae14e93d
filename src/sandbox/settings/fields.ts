import type { NetworkPolicy } from "../../../contracts/types.js";
import { nearestName } from "../../util/nearest.js";
import * as is from "../../util/schema.js";
import { check, invalidArgument, type Schema } from "../../util/schema.js";
import { backendOptionNames } from "../backend-names.js";
import { parseAllow } from "../egress.js";

const hosts: Schema<string[]> = is.custom(
  (value, name) => {
    if (!Array.isArray(value) || value.length === 0) throw invalidArgument(name, "a list of host names", value);
    parseAllow(value as string[], name);
  },
  { type: "array", items: { type: "string" }, minItems: 1 },
);
const someHosts = is.object<{ allow: string[] }>(
  { allow: is.required(hosts) },
  {},
  { incomplete: "a list named allow" },
);

/** What a sandbox can reach. */
export const network: Schema<NetworkPolicy> = is.custom(
  (value, name) => {
    if (value === "none" || value === "full") return;
    if (typeof value !== "object" || value === null)
      throw invalidArgument(name, "none, full or a list named allow", value);
    check(value, someHosts, name);
  },
  { oneOf: [{ enum: ["none", "full"] }, someHosts] },
);

/** The name of a backend. One that is nearly that of a known backend is a mistake. */
export const backendName: Schema<string> = is.and(
  is.matching(/^[a-z][a-z0-9-]{0,63}$/, "the name of a backend"),
  (value, name) => {
    const known = backendOptionNames();
    const nearest = known.includes(value) ? undefined : nearestName(value, known);
    if (nearest !== undefined) throw invalidArgument(name, `the name of a backend (did you mean "${nearest}"?)`, value);
  },
);

/** The line by which an editor finds the schema. */
export const schemaLine: Schema<string> = is.custom(() => undefined, { type: "string" });

import type { NetworkPolicy, NetworkRules } from "../../../../contracts/types.js";
import * as is from "../../../util/schema.js";
import { check, invalidArgument, type Schema } from "../../../util/schema.js";
import { parseRules } from "../policy.js";
import { parseUpstream } from "../upstream/parse-upstream.js";
import { readAuthorities } from "../upstream/read-authorities.js";
import type { NetworkEntry } from "./network-entry.js";
import { networkRule } from "./rule-schema.js";

/** An entry of `allow` or `deny` in a printed schema. */
const entry = { oneOf: [{ type: "string" }, networkRule] } as const;

const upstream: Schema<string> = is.custom(
  (value, name) => {
    if (typeof value !== "string") throw invalidArgument(name, '"none" or "http://host:port"', value);
    if (value !== "none") parseUpstream(value, name);
  },
  { type: "string", description: "The proxy of your organisation, or none." },
);
const ca: Schema<string> = is.custom(
  (value, name) => {
    if (typeof value !== "string") throw invalidArgument(name, "a path", value);
    readAuthorities(value, name);
  },
  { type: "string", description: "Absolute path of a PEM file with further certificate authorities." },
);

/** How a network is written somewhere. */
interface Form {
  /** What an error expects. */
  readonly expected: string;
  /** The least number of entries of `allow`. */
  readonly least: 0 | 1;
  /** Whether a port of the host's loopback may be in it. Only where the user wrote it for this sandbox. */
  readonly isHostLoopbackKnown: boolean;
  /** Whether it is the most that others may reach: it says nothing about how. */
  readonly isBound?: boolean;
}

/** The schema of what a sandbox may reach. */
export function networkSchema({ expected, least, isHostLoopbackKnown, isBound = false }: Form): Schema<NetworkPolicy> {
  const list = (minItems: 0 | 1): Schema<readonly NetworkEntry[]> =>
    is.custom(
      (value, name) => {
        if (!Array.isArray(value) || value.length < minItems) {
          throw invalidArgument(name, minItems === 0 ? "an array" : "a list of host names", value);
        }
      },
      { type: "array", items: entry, ...(minItems > 0 && { minItems }) },
    );
  const rules = is.object<NetworkRules>(
    { allow: is.required(list(least)), deny: list(0), upstream, ca },
    {},
    { incomplete: "a list named allow" },
  );
  return is.custom(
    (value, name) => {
      if (value === "none" || value === "full") return;
      if (typeof value !== "object" || value === null) throw invalidArgument(name, expected, value);
      check(value, rules, name);
      for (const field of ["upstream", "ca"] as const) {
        if (isBound && value[field] !== undefined) throw invalidArgument(name, "only allow and deny", field);
      }
      parseRules(value, { name, isHostLoopbackKnown });
    },
    { oneOf: [{ enum: ["none", "full"] }, rules] },
  );
}

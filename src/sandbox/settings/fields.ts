import type { NetworkPolicy } from "../../../contracts/types.js";
import { backendOptionNames } from "../../machine/backend-names.js";
import { nearestName } from "../../util/nearest.js";
import * as is from "../../util/schema.js";
import { invalidArgument, type Schema } from "../../util/schema.js";
import { networkSchema } from "../egress.js";

const written = { expected: "none, full or a list named allow", least: 1 } as const;

/** What a sandbox can reach. A port of the host's loopback is opened for one sandbox, not for all. */
export const network: Schema<NetworkPolicy> = networkSchema({ ...written, isHostLoopbackKnown: false });

/** The most that a sandbox can reach. */
export const mostNetwork: Schema<NetworkPolicy> = networkSchema({
  ...written,
  isHostLoopbackKnown: true,
  isBound: true,
});

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

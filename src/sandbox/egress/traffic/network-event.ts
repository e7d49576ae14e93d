import type { NetworkEvent } from "../../../../contracts/types.js";
import type { Schema } from "../../../util/schema.js";
import * as is from "../../../util/schema.js";

const count = is.whole(0, Number.MAX_SAFE_INTEGER);

/** One line of the audit log, and of `glovebox net --json`. */
export const NETWORK_EVENT_SCHEMA: Schema<NetworkEvent> = is.object(
  {
    version: is.required(is.literal(1, "1")),
    time: is.required(is.text),
    sandbox: is.required(is.text),
    connection: is.required(is.positive),
    event: is.required(is.oneOf("open", "request", "close", "blocked")),
    decision: is.required(is.oneOf("allowed", "denied")),
    rule: is.required(is.text),
    host: is.required(is.text),
    port: is.port,
    method: is.text,
    secrets: is.list(is.text),
    sent: count,
    received: count,
    durationMs: count,
  },
  {
    title: "Glovebox network event",
    description: "One connection, request or refusal of a sandbox. A log has one on each line.",
  },
);

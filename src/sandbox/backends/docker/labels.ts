import { createHash } from "node:crypto";
import { gloveboxHome } from "../../../machine/home.js";
import { currentOwner, isOwnerAlive, type Owner, type OwnerState } from "../../../machine/owner.js";
import { isoTime } from "../../../util/iso-time.js";

/** On everything that Glovebox creates on an engine: its owner. */
export const OWNER_LABEL = "glovebox.owner";
/** When it may be removed if its owner cannot be seen from here. ISO 8601. */
export const DEADLINE_LABEL = "glovebox.deadline";
/** The id of its sandbox. */
export const SANDBOX_LABEL = "glovebox.sandbox";
/** The name of its sandbox. */
export const NAME_LABEL = "glovebox.name";
/** Before the key of each label that the user gave the sandbox: their own words must not mean anything to other tools. */
export const GIVEN_LABEL = "glovebox.label.";
/** It outlives its owner; only an explicit removal removes it. */
export const KEPT_LABEL = "glovebox.kept";
/** The id of a snapshot. */
export const SNAPSHOT_LABEL = "glovebox.snapshot";
/** Which ledger records it. */
export const HOME_LABEL = "glovebox.home";
/** Shared by all, created again when it is missing. */
export const CACHE_LABEL = "glovebox.cache";

/** Longer than any run takes. */
const MOST_LIFE = 7 * 24 * 3_600_000;

/** The labels of everything that this process creates. */
export function ownerLabels(): Record<string, string> {
  const { bootId, pidNs, pid, startTime, host = "" } = currentOwner();
  return {
    [OWNER_LABEL]: JSON.stringify([bootId, pidNs, pid, startTime, host]),
    [DEADLINE_LABEL]: isoTime(Date.now() + MOST_LIFE),
    [HOME_LABEL]: homeMark(),
  };
}

/** Identifies the ledger of this user on this machine. */
export function homeMark(): string {
  return createHash("sha256")
    .update(`${currentOwner().host ?? ""} ${gloveboxHome()}`)
    .digest("hex")
    .slice(0, 16);
}

/** Whether an object with these labels has no owner any more and may be removed. */
export function isAbandoned(labels: Readonly<Record<string, string>>, now: number = Date.now()): boolean {
  if (labels[KEPT_LABEL] !== undefined || labels[CACHE_LABEL] !== undefined) return false;
  const state = ownerState(labels[OWNER_LABEL]);
  if (state !== "foreign") return state === "dead";
  // The owner cannot be seen from here. An invalid deadline never passes.
  return Date.parse(labels[DEADLINE_LABEL] ?? "") <= now;
}

function ownerState(label: string | undefined): OwnerState {
  try {
    const [bootId, pidNs, pid, startTime, host] = JSON.parse(label ?? "") as unknown[];
    const owner = { bootId, pidNs, pid, startTime, host };
    const isWhole = [bootId, pidNs, startTime, host].every((field) => typeof field === "string");
    return isWhole && Number.isSafeInteger(pid) ? isOwnerAlive(owner as Owner) : "foreign";
  } catch {
    return "foreign";
  }
}

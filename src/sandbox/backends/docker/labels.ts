import { createHash } from "node:crypto";
import { gloveboxHome } from "../../../machine/home.js";
import { currentOwner, isOwnerAlive, type Owner, type OwnerState } from "../../../machine/owner.js";

/** On everything that Glovebox makes on an engine: who answers for it. */
export const OWNER_LABEL = "glovebox.owner";
/** When what belongs to an owner who cannot be looked at from here may be taken away; ISO 8601. */
export const DEADLINE_LABEL = "glovebox.deadline";
/** The id of the sandbox that it is part of. */
export const SANDBOX_LABEL = "glovebox.sandbox";
/** It outlives its owner: only whoever knows of it takes it away. */
export const KEPT_LABEL = "glovebox.kept";
/** The id of a snapshot. */
export const SNAPSHOT_LABEL = "glovebox.snapshot";
/** Which ledger knows of it. */
export const HOME_LABEL = "glovebox.home";
/** Everybody's, made again when it is missed. */
export const CACHE_LABEL = "glovebox.cache";

/** Longer than any run that somebody waits for. */
const MOST_LIFE = 7 * 24 * 3_600_000;

/** The labels that tell what this process makes from what others do. */
export function ownerLabels(): Record<string, string> {
  const { bootId, pidNs, pid, startTime, host = "" } = currentOwner();
  return {
    [OWNER_LABEL]: JSON.stringify([bootId, pidNs, pid, startTime, host]),
    [DEADLINE_LABEL]: new Date(Date.now() + MOST_LIFE).toISOString(),
    [HOME_LABEL]: homeMark(),
  };
}

/** Tells the ledger of this user from that of another. */
export function homeMark(): string {
  return createHash("sha256")
    .update(`${currentOwner().host ?? ""} ${gloveboxHome()}`)
    .digest("hex")
    .slice(0, 16);
}

/** Whether what has these labels may be taken away, since nobody answers for it any more. */
export function isAbandoned(labels: Readonly<Record<string, string>>, now: number = Date.now()): boolean {
  if (labels[KEPT_LABEL] !== undefined || labels[CACHE_LABEL] !== undefined) return false;
  const state = ownerState(labels[OWNER_LABEL]);
  if (state !== "foreign") return state === "dead";
  // Nobody here can see that owner. Whatever the label says, a time that cannot be read is none.
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

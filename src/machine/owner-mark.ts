import { createHash } from "node:crypto";
import { isoTime } from "../util/iso-time.js";
import { gloveboxHome } from "./home.js";
import { currentOwner, isOwnerAlive, type Owner } from "./owner.js";

/** Longer than any run takes. */
const MOST_LIFE = 7 * 24 * 3_600_000;

/** What an object at an engine shows of the process that made it. */
export interface OwnerMark {
  /** As `ownerText` writes it. */
  readonly owner: string | undefined;
  /** When it may be removed if its owner cannot be seen from here. ISO 8601. */
  readonly deadline: string | undefined;
}

/** This process, as a text that fits on an object at an engine. */
export function ownerText(): string {
  const { bootId, pidNs, pid, startTime, host = "" } = currentOwner();
  return JSON.stringify([bootId, pidNs, pid, startTime, host]);
}

/** The deadline of something that this process makes now. */
export function ownerDeadline(): string {
  return isoTime(Date.now() + MOST_LIFE);
}

/** Parses the text of `ownerText`; undefined if it isn't one. */
export function parseOwner(text: string | undefined): (Owner & { host: string }) | undefined {
  try {
    const [bootId, pidNs, pid, startTime, host] = JSON.parse(text ?? "") as unknown[];
    const owner = { bootId, pidNs, pid, startTime, host };
    const isWhole = [bootId, pidNs, startTime, host].every((field) => typeof field === "string");
    return isWhole && Number.isSafeInteger(pid) ? (owner as Owner & { host: string }) : undefined;
  } catch {
    return undefined;
  }
}

/** Identifies the ledger of this user on this machine. */
export function homeMark(): string {
  return createHash("sha256")
    .update(`${currentOwner().host ?? ""} ${gloveboxHome()}`)
    .digest("hex")
    .slice(0, 16);
}

/** Whether an object has no owner any more and may be removed. */
export function isAbandonedMark({ owner, deadline }: OwnerMark, now: number = Date.now()): boolean {
  const parsed = parseOwner(owner);
  const state = parsed === undefined ? "foreign" : isOwnerAlive(parsed);
  if (state !== "foreign") return state === "dead";
  // The owner cannot be seen from here. An invalid deadline never passes.
  return Date.parse(deadline ?? "") <= now;
}

import { homeMark, isAbandonedMark, ownerDeadline, ownerText } from "../../../machine/owner-mark.js";

/** On everything that Glovebox creates on an engine: its owner. */
export const OWNER_LABEL = "glovebox.owner";
/** When it may be removed if its owner cannot be seen from here. ISO 8601. */
export const DEADLINE_LABEL = "glovebox.deadline";
/** The name that a container was created with. */
export const CONTAINER_LABEL = "glovebox.container";
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

/** The labels of everything that this process creates. */
export function ownerLabels(): Record<string, string> {
  return { [OWNER_LABEL]: ownerText(), [DEADLINE_LABEL]: ownerDeadline(), [HOME_LABEL]: homeMark() };
}

/** Whether an object with these labels has no owner any more and may be removed. */
export function isAbandoned(labels: Readonly<Record<string, string>>, now?: number): boolean {
  if (labels[KEPT_LABEL] !== undefined || labels[CACHE_LABEL] !== undefined) return false;
  return isAbandonedMark({ owner: labels[OWNER_LABEL], deadline: labels[DEADLINE_LABEL] }, now);
}

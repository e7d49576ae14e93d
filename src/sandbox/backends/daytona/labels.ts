import type { RemoteSandboxInfo, SandboxEntry } from "../../../../contracts/backend.js";
import { currentOwner } from "../../../machine/owner.js";

/** On each of our sandboxes, so that it can be found without a ledger. */
export const MARK: Readonly<Record<string, string>> = { glovebox: "sandbox" };
const OWNER = ["bootId", "pidNs", "pid", "startTime", "host"] as const;

const NAME = "glovebox-name";
/** Before the key of each label that the user gave the sandbox. */
const GIVEN = "glovebox-label/";

/** The labels of a sandbox at the service: its owner, whether it stays, and what the user calls it. */
export function labelsOf(entry: Pick<SandboxEntry, "id" | "name" | "labels">, keep: boolean): Record<string, string> {
  const owner = currentOwner();
  const text = OWNER.map((field) => encodeURIComponent(owner[field] ?? "")).join("/");
  const given = Object.entries(entry.labels).map(([key, value]) => [`${GIVEN}${key}`, value]);
  return {
    ...MARK,
    "glovebox-id": entry.id,
    "glovebox-owner": text,
    ...(keep && { "glovebox-keep": "true" }),
    ...(entry.name !== undefined && { [NAME]: entry.name }),
    ...(Object.fromEntries(given) as Record<string, string>),
  };
}

/** Parses the labels; undefined if they are incomplete. */
export function readLabels(
  labels: Readonly<Record<string, string>>,
): Pick<RemoteSandboxInfo, "id" | "owner" | "keep" | "name" | "labels"> | undefined {
  const id = labels["glovebox-id"];
  const parts = (labels["glovebox-owner"] ?? "").split("/").map(decodeURIComponent);
  const [bootId = "", pidNs = "", pid = "", startTime = "", host = ""] = parts;
  if (id === undefined || parts.length !== OWNER.length || !/^[1-9]\d*$/.test(pid)) return undefined;
  const given = Object.entries(labels).flatMap(([key, value]) =>
    key.startsWith(GIVEN) ? [[key.slice(GIVEN.length), value]] : [],
  );
  return {
    id,
    owner: { bootId, pidNs, pid: Number(pid), startTime, host },
    keep: labels["glovebox-keep"] === "true",
    ...(labels[NAME] && { name: labels[NAME] }),
    ...(given.length > 0 && { labels: Object.fromEntries(given) as Record<string, string> }),
  };
}

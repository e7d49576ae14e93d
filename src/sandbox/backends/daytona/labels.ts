import { currentOwner, type Owner } from "../../../machine/owner.js";

/** On each of our sandboxes, so that it can be found without a ledger. */
export const MARK: Readonly<Record<string, string>> = { glovebox: "sandbox" };
const OWNER = ["bootId", "pidNs", "pid", "startTime", "host"] as const;

/** The labels of a sandbox at the service: its owner, and whether it stays. */
export function labelsOf(id: string, keep: boolean): Record<string, string> {
  const owner = currentOwner();
  const text = OWNER.map((field) => encodeURIComponent(owner[field] ?? "")).join("/");
  return { ...MARK, "glovebox-id": id, "glovebox-owner": text, ...(keep ? { "glovebox-keep": "true" } : undefined) };
}

/** Parses the labels; undefined if they are incomplete. */
export function readLabels(
  labels: Readonly<Record<string, string>>,
): { id: string; owner: Owner; keep: boolean } | undefined {
  const id = labels["glovebox-id"];
  const parts = (labels["glovebox-owner"] ?? "").split("/").map(decodeURIComponent);
  const [bootId = "", pidNs = "", pid = "", startTime = "", host = ""] = parts;
  if (id === undefined || parts.length !== OWNER.length || !/^[1-9]\d*$/.test(pid)) return undefined;
  return { id, owner: { bootId, pidNs, pid: Number(pid), startTime, host }, keep: labels["glovebox-keep"] === "true" };
}

import { currentOwner, type Owner } from "../../../machine/owner.js";

/** On every sandbox of ours, so that it can be found without a ledger. */
export const MARK: Readonly<Record<string, string>> = { glovebox: "sandbox" };
const OWNER = ["bootId", "pidNs", "pid", "startTime", "host"] as const;

/** What a sandbox at the service says of itself: whose it is, and whether it shall stay. */
export function labelsOf(id: string, keep: boolean): Record<string, string> {
  const owner = currentOwner();
  const text = OWNER.map((field) => encodeURIComponent(owner[field] ?? "")).join("/");
  return { ...MARK, "glovebox-id": id, "glovebox-owner": text, ...(keep ? { "glovebox-keep": "true" } : undefined) };
}

/** Reads the labels again; undefined when they are not complete. */
export function readLabels(
  labels: Readonly<Record<string, string>>,
): { id: string; owner: Owner; keep: boolean } | undefined {
  const id = labels["glovebox-id"];
  const parts = (labels["glovebox-owner"] ?? "").split("/").map(decodeURIComponent);
  const [bootId = "", pidNs = "", pid = "", startTime = "", host = ""] = parts;
  if (id === undefined || parts.length !== OWNER.length || !/^[1-9]\d*$/.test(pid)) return undefined;
  return { id, owner: { bootId, pidNs, pid: Number(pid), startTime, host }, keep: labels["glovebox-keep"] === "true" };
}

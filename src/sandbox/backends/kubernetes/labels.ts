import type { RemoteSandboxInfo, SandboxEntry } from "../../../../contracts/backend.js";
import { homeMark, isAbandonedMark, ownerDeadline, ownerText, parseOwner } from "../../../machine/owner-mark.js";
import type { ObjectMeta } from "./client/resources.js";

/** On everything that Glovebox makes in a cluster. The values of labels are short and of few characters; the rest is in annotations. */
export const MANAGED: Readonly<Record<string, string>> = { "app.kubernetes.io/managed-by": "glovebox" };
/** The id of its sandbox. */
export const SANDBOX_LABEL = "glovebox/sandbox";
/** Which ledger records it. */
export const HOME_LABEL = "glovebox/home";
/** It outlives its owner; only an explicit removal removes it. */
export const KEPT_LABEL = "glovebox/kept";
/** Selects the network policy of a pod. */
export const NETWORK_LABEL = "glovebox/network";
/** The network of a task, on its pods and on the policy that lets them reach each other. */
export const TASK_LABEL = "glovebox/task";
/** Shared by all sandboxes of a namespace, made again when it is missing. */
export const SHARED_LABEL = "glovebox/shared";

const OWNER = "glovebox/owner";
const DEADLINE = "glovebox/deadline";
const NAME = "glovebox/name";
const GIVEN = "glovebox/labels";

type Marks = Pick<ObjectMeta, "labels" | "annotations">;

/** The labels and annotations of what belongs to one sandbox: its owner, whether it stays, and what the user calls it. */
export function marksOf({
  id,
  keep,
  name,
  labels,
}: Pick<SandboxEntry, "id" | "keep" | "name" | "labels">): Required<Marks> {
  return {
    labels: {
      ...MANAGED,
      [SANDBOX_LABEL]: id,
      [HOME_LABEL]: homeMark(),
      ...(keep && { [KEPT_LABEL]: "1" }),
    },
    annotations: {
      [OWNER]: ownerText(),
      [DEADLINE]: ownerDeadline(),
      ...(name !== undefined && { [NAME]: name }),
      ...(Object.keys(labels).length > 0 && { [GIVEN]: JSON.stringify(labels) }),
    },
  };
}

/** The labels and annotations of a policy that is there only for a canary. */
export function marksOfCanary(): Required<Marks> {
  return { labels: { ...MANAGED }, annotations: { [OWNER]: ownerText(), [DEADLINE]: ownerDeadline() } };
}

/** Whether the process is dead that made an object, which may then be removed. */
export function isAbandoned({ annotations = {} }: ObjectMeta): boolean {
  return isAbandonedMark({ owner: annotations[OWNER], deadline: annotations[DEADLINE] });
}

/** Reads the marks of an object; undefined if it belongs to no sandbox of ours. */
export function readMarks({
  labels = {},
  annotations = {},
  creationTimestamp,
}: ObjectMeta): Omit<RemoteSandboxInfo, "remove"> | undefined {
  const id = labels[SANDBOX_LABEL];
  const owner = parseOwner(annotations[OWNER]);
  if (id === undefined || owner === undefined) return undefined;
  const given = parseLabels(annotations[GIVEN]);
  const name = annotations[NAME];
  return {
    id,
    owner,
    keep: labels[KEPT_LABEL] !== undefined,
    ...(creationTimestamp !== undefined && { createdAt: creationTimestamp }),
    ...(name !== undefined && { name }),
    ...(given && { labels: given }),
  };
}

function parseLabels(text: string | undefined): Record<string, string> | undefined {
  if (text === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== "object" || value === null) return undefined;
    return Object.fromEntries(
      Object.entries(value).filter((entry): entry is [string, string] => typeof entry[1] === "string"),
    );
  } catch {
    return undefined;
  }
}

import type { Resource } from "../../contracts/backend.js";
import type { Limits, Mount, NetworkPolicy } from "../../contracts/types.js";
import type { Owner } from "../machine/owner.js";
import { isSandboxId } from "../machine/sandbox-id.js";
import { isSandboxName } from "../machine/sandbox-name.js";

const STATES = ["creating", "ready", "kept", "removing"] as const;

/** A `kept` sandbox stays when its owner dies; all others are removed. */
export type RecordState = (typeof STATES)[number];

/** What restricts a sandbox, and must still apply when it is reopened. */
export interface SandboxRules {
  readonly network: NetworkPolicy;
  readonly limits: Limits;
  readonly isolation: "required" | "none";
  /** Absent: `workdir`. */
  readonly paths?: "workdir" | "sandbox";
  /** Options that stay as they were unless a call changes them. */
  readonly options: Readonly<Record<string, unknown>>;
  /** Absent: not recorded. */
  readonly exposure?: Exposure;
}

/** What a sandbox is made of and shows of the host, for policies. */
export interface Exposure {
  /** Null: an image that is not known. */
  readonly images: readonly (string | null)[];
  /** Options that weaken the isolation. */
  readonly unsafe: readonly string[];
  /** Directories of the host that are visible besides the option `mounts`. */
  readonly hostPaths: readonly Mount[];
}

/** What the ledger knows about one sandbox. Never contains a secret. */
export interface SandboxRecord {
  readonly version: 1;
  readonly id: string;
  readonly backend: string;
  readonly state: RecordState;
  /** The process that has it open. Absent: none. */
  readonly owner?: Owner;
  /** ISO 8601. */
  readonly createdAt: string;
  /** ISO 8601. Absent: never. */
  readonly expiresAt?: string;
  /** Inside. */
  readonly workDir: string;
  /** Where the files of a kept sandbox are on this machine. Absent: nowhere, or not known. */
  readonly hostDir?: string;
  /** Unique in the ledger. */
  readonly name?: string;
  readonly labels?: Readonly<Record<string, string>>;
  /** A digest of each option that made a named sandbox: a call that would make it again must give the same. */
  readonly made?: Readonly<Record<string, string>>;
  /** The variables that a kept sandbox was last opened with. Their values may be secrets. */
  readonly envNames?: readonly string[];
  /** Whether a kept sandbox also brings back `$HOME` and `/tmp`. */
  readonly keepsAll?: boolean;
  /** What restricts a kept sandbox when it is reopened. Absent in records of version 0.1. */
  readonly rules?: SandboxRules;
  /** What its backend needs to reopen it. */
  readonly reopen?: unknown;
  /** In the order in which they were made. */
  readonly resources: readonly Resource[];
}

/** Parses a record; returns the reason if the text is not one. */
export function parseRecord(text: string, id: string): SandboxRecord | string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return "not valid JSON";
  }
  if (!isObject(value)) return "not an object";
  if (value["version"] !== 1) return `version ${JSON.stringify(value["version"])} is not known`;
  if (value["id"] !== id || !isSandboxId(id)) return "the id is not that of its directory";
  for (const field of ["backend", "workDir"]) {
    if (typeof value[field] !== "string") return `${field} is not a string`;
  }
  if (typeof (value["hostDir"] ?? "") !== "string") return "hostDir is not a string";
  if (!STATES.some((state) => state === value["state"])) return "state is not known";
  if (!isTime(value["createdAt"])) return "createdAt is not a time";
  if (value["expiresAt"] !== undefined && !isTime(value["expiresAt"])) return "expiresAt is not a time";
  if (value["owner"] !== undefined && !isOwner(value["owner"])) return "owner is not complete";
  if (value["name"] !== undefined && !(typeof value["name"] === "string" && isSandboxName(value["name"]))) {
    return "name is not valid";
  }
  for (const field of ["labels", "made"]) {
    if (value[field] !== undefined && !isTexts(value[field])) return `${field} is not complete`;
  }
  if (value["envNames"] !== undefined && !isTextList(value["envNames"])) return "envNames is not a list of names";
  const resources = value["resources"];
  if (!Array.isArray(resources) || !resources.every(isResource)) return "resources are not complete";
  return value as unknown as SandboxRecord;
}

function isResource(value: unknown): boolean {
  return isObject(value) && typeof value["kind"] === "string";
}

function isTexts(value: unknown): boolean {
  return isObject(value) && Object.values(value).every((text) => typeof text === "string");
}

function isTextList(value: unknown): boolean {
  return Array.isArray(value) && value.every((text) => typeof text === "string");
}

/** Whether a value from a file names an owner completely. */
export function isOwner(value: unknown): boolean {
  if (!isObject(value) || !Number.isSafeInteger(value["pid"]) || (value["pid"] as number) <= 0) return false;
  const texts = [value["bootId"], value["pidNs"], value["startTime"], value["host"] ?? ""];
  return texts.every((text) => typeof text === "string");
}

function isTime(value: unknown): boolean {
  return typeof value === "string" && !Number.isNaN(Date.parse(value));
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

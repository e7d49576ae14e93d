import type { SandboxEntry } from "../../../../contracts/backend.js";
import type { NetworkPolicy } from "../../../../contracts/types.js";
import type { TreeBase } from "../../git.js";
import type { ClusterChoice } from "./client/kubeconfig.js";
import type { PodPlan } from "./manifests/job.js";

/** How long a guest goes on without its host, in milliseconds. */
export const DEFAULT_LEASE = 60_000;
/** Longer than any run takes, in seconds. */
const LONGEST_LIFE = 7 * 24 * 3_600;
/** So much later than the process that has it the cluster ends a sandbox, in seconds: calls then fail because of the ttl, not because of a lost pod. */
const AFTER_TTL = 30;

/** How a sandbox was created, as written to the ledger. Plain data and no secrets. */
export interface KubernetesPlan {
  readonly cluster: ClusterChoice;
  readonly pod: PodPlan;
  /** The pod that has the files, once it runs. Another one of the same Job would be empty. */
  readonly podUid?: string;
  /** The pool to take a pod from, if it has one. */
  readonly pool?: string;
  /** The pod that was taken from it. Absent: a Job has it. */
  readonly claimed?: string;
  readonly network: NetworkPolicy;
  /** Where the files come from. A snapshot can be restored only where this is the same. */
  readonly source: string;
  /** How long the guest goes on without its host, in milliseconds. */
  readonly lease: number;
  /** The commit that the files started from, where there is a repository. */
  readonly base?: TreeBase;
}

/** How a guest goes on when nobody has been heard for its lease, in milliseconds: it ends, or keeps the files. A warm one is told by its first host. */
export function guestArgv(lease: number, workDir: string, how: "ends" | "kept" | "warm"): string[] {
  return ["serve", "--linked", String(Math.ceil(lease / 1_000)), ...(how === "ends" ? [] : [`--${how}`]), workDir];
}

/** When the cluster ends a pod whatever happens. One that gets no node never starts the guest, which would end it. */
export function deadlineOf({ expiresAt, keep }: Pick<SandboxEntry, "expiresAt" | "keep">): { deadline?: number } {
  if (expiresAt === undefined) return keep ? {} : { deadline: LONGEST_LIFE };
  return { deadline: Math.max(1, Math.ceil((Date.parse(expiresAt) - Date.now()) / 1_000) + AFTER_TTL) };
}

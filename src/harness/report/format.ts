import { countOf } from "../../util/count-of.js";
import type { ChangeSummary, RunCost, SecretReport } from "../types.js";

/** A time as a person says it: `340ms`, `14s`, `3m41s`, `1h02m`. */
export function formatDuration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)}ms`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes}m${String(seconds % 60).padStart(2, "0")}s`;
  return `${Math.floor(minutes / 60)}h${String(minutes % 60).padStart(2, "0")}m`;
}

/** A sum of money; what is not known is said to be. */
export function formatCost(cost: number | null | undefined): string {
  if (cost === null || cost === undefined) return "cost unknown";
  return `$${cost.toFixed(2)}`;
}

/** The cost of a run, and whether that is all of it; undefined when no agent ran. */
export function formatRunCost({ usd, unpriced }: RunCost): string | undefined {
  if (usd === null) return unpriced.length > 0 ? "cost unknown" : undefined;
  return unpriced.length > 0 ? `at least ${formatCost(usd)}` : formatCost(usd);
}

/** How much was changed: `3 files +41 −7`. */
export function formatChanges(changes: Pick<ChangeSummary, "files" | "insertions" | "deletions">): string {
  const { files, insertions, deletions } = changes;
  return `${countOf(files.length, "file")} +${insertions} −${deletions}`;
}

/** A number of tokens: `812`, `31k`, `1.2M`. */
export function formatTokens(count: number): string {
  if (count < 1000) return String(count);
  return count < 1_000_000 ? `${Math.round(count / 1000)}k` : `${(count / 1_000_000).toFixed(1)}M`;
}

/** Formats how the secrets of a run got to its commands; undefined if it had none. */
export function formatSecrets(secrets: readonly SecretReport[] = []): string | undefined {
  if (secrets.length === 0) return undefined;
  return secrets
    .map(({ name, kept, hosts = [], why }) =>
      kept === "outside"
        ? `${name}: never inside, only for ${hosts.join(", ")}`
        : `${name}: inside${why ? ` (${why})` : ""}`,
    )
    .join("; ");
}

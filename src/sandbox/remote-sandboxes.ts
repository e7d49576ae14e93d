import type { Backend, RemoteSandboxInfo } from "../../contracts/backend.js";
import { toSandboxError } from "../../contracts/errors.js";
import { isOwnerAlive } from "../machine/owner.js";
import type { ReapOptions, ReapReport, SandboxInfo } from "./lifecycle.js";
import { loadBackends } from "./registry.js";

/** Sandboxes at services that this ledger does not know: of another home, another machine or a lost disk. */
export async function listUnknownRemotes(known: ReadonlySet<string>): Promise<SandboxInfo[]> {
  const found: SandboxInfo[] = [];
  for (const backend of await loadBackends()) {
    // Listing what is here must not depend on a service that does not answer.
    const remotes = await unknownOf(backend, known).catch(() => []);
    for (const { id, keep, createdAt, owner, name, labels } of remotes) {
      const alive = isOwnerAlive(owner) !== "dead";
      const more = { ...(createdAt && { createdAt }), ...(name && { name }), ...(labels && { labels }) };
      found.push({ id, state: keep ? "kept" : "ready", backend: backend.name, alive, ...more });
    }
  }
  return found;
}

/** Removes those whose process is certainly dead and that are not kept; adds the outcome to the report. */
export async function reapUnknownRemotes(report: ReapReport, opts: ReapOptions): Promise<void> {
  const known = new Set([...report.removed, ...report.kept, ...report.failed.map(({ id }) => id)]);
  for (const backend of await loadBackends(opts.backend)) {
    try {
      for (const remote of await unknownOf(backend, known)) await reapRemote(remote, report, opts.dryRun === true);
    } catch (error) {
      const { name } = backend;
      report.failed.push({ id: name, error: toSandboxError(error, { backend: name, operation: "reap" }) });
    }
  }
}

async function reapRemote(
  { id, keep, owner, remove }: RemoteSandboxInfo,
  report: ReapReport,
  dryRun: boolean,
): Promise<void> {
  if (keep || isOwnerAlive(owner) !== "dead") {
    report.kept.push(id);
    return;
  }
  try {
    if (!dryRun) await remove();
    report.removed.push(id);
  } catch (error) {
    report.failed.push({ id, error: toSandboxError(error, { operation: "reap" }) });
  }
}

async function unknownOf({ list }: Backend, known: ReadonlySet<string>): Promise<RemoteSandboxInfo[]> {
  return ((await list?.()) ?? []).filter(({ id }) => !known.has(id));
}

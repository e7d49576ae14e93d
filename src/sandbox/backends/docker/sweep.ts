import { snapshotIds } from "../../../ledger.js";
import { homeMark } from "../../../machine/owner-mark.js";
import type { Engine } from "./engine/engine.js";
import { engineOf } from "./engine/engines.js";
import { HOME_LABEL, isAbandoned, KEPT_LABEL, OWNER_LABEL, SNAPSHOT_LABEL } from "./labels.js";
import { removeContainer } from "./remove-container.js";
import { removeImage, removeNetwork } from "./resources.js";

interface Labelled {
  readonly Id: string;
  readonly Labels?: Readonly<Record<string, string>> | null;
  readonly Names?: readonly string[];
  readonly RepoTags?: readonly string[] | null;
}

/** Containers first: a network or an image that a container uses cannot be removed. */
const KINDS: readonly { path: string; remove(engine: Engine, found: Labelled): Promise<void> }[] = [
  { path: "/containers/json", remove: (engine, { Id }) => removeContainer(engine, Id) },
  { path: "/networks", remove: (engine, { Id }) => removeNetwork(engine, Id) },
  { path: "/volumes", remove: (engine, { Id }) => removeVolume(engine, Id) },
  { path: "/images/json", remove: (engine, { Id, RepoTags }) => removeImage(engine, firstTag(RepoTags) ?? Id) },
];

/**
 * Removes containers, networks, volumes and images of dead owners that no record names, and returns their names. Never
 * removes what is kept, what a live owner has, or, before its deadline, what an owner has who cannot be seen from here.
 */
export async function sweepEngine(
  { dryRun = false }: { dryRun?: boolean } = {},
  engine: Engine = engineOf(),
): Promise<string[]> {
  const known = new Set(await snapshotIds());
  const removed: string[] = [];
  for (const { path, remove } of KINDS) {
    for (const found of await list(engine, path)) {
      const labels = found.Labels ?? {};
      if (!isAbandoned(labels) && !isUnknownSnapshot(labels, known)) continue;
      if (!dryRun) await remove(engine, found);
      removed.push(found.Names?.[0]?.slice(1) ?? firstTag(found.RepoTags) ?? found.Id);
    }
  }
  return removed;
}

/** Whether it is the image of one of this user's snapshots that was never recorded, or has been deleted since. */
function isUnknownSnapshot(labels: Readonly<Record<string, string>>, known: ReadonlySet<string>): boolean {
  const snapshot = labels[SNAPSHOT_LABEL];
  if (snapshot === undefined || labels[HOME_LABEL] !== homeMark() || known.has(snapshot)) return false;
  const { [KEPT_LABEL]: _, ...owned } = labels;
  return isAbandoned(owned);
}

async function list(engine: Engine, path: string): Promise<Labelled[]> {
  const query = { all: true, filters: { label: [OWNER_LABEL] } };
  const answer = await engine.call<Labelled[] | { Volumes?: { Name: string; Labels: Labelled["Labels"] }[] | null }>(
    "GET",
    path,
    { query, timeout: 20_000 },
  );
  if (Array.isArray(answer)) return answer;
  return (answer.Volumes ?? []).map(({ Name, Labels }) => ({ Id: Name, Labels: Labels ?? null }));
}

function firstTag(tags: readonly string[] | null | undefined): string | undefined {
  return tags?.find((tag) => tag !== "<none>:<none>");
}

async function removeVolume(engine: Engine, name: string): Promise<void> {
  await engine.call("DELETE", `/volumes/${name}`, { query: { force: true } });
}

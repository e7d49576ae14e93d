import type { Json } from "./checks.js";
import type { StoredCommand, StoredSandbox, StoredSession, StoredSnapshot } from "./store.js";

/** A sandbox as the service describes it. */
export function describeSandbox(sandbox: StoredSandbox): Json {
  const { name, persistent, session, currentSnapshotId, policy, timeout, keepLast } = sandbox;
  const { createdAt, id, status } = session;
  return {
    name,
    persistent,
    createdAt,
    updatedAt: createdAt,
    currentSessionId: id,
    status,
    currentSnapshotId,
    timeout,
    networkPolicy: policyAnswer(policy),
    snapshotExpiration: sandbox.expiration,
    keepLastSnapshots: keepLast,
  };
}

/** A session as the service describes it. */
export function describeSession(session: StoredSession): Json {
  const { id, status, timeout, createdAt, cwd, policy, sourceSnapshotId } = session;
  const at = { requestedAt: createdAt, createdAt, updatedAt: createdAt, startedAt: createdAt };
  const machine = { memory: 4096, vcpus: 2, region: "iad1" };
  return { id, ...machine, timeout, status, ...at, cwd, sourceSnapshotId, networkPolicy: policyAnswer(policy) };
}

/** A command as the service describes it. */
export function describeCommand(session: StoredSession, { id, order, exitCode, startedAt }: StoredCommand): Json {
  const { command: name, args } = order;
  return { id, name, args, cwd: order["cwd"] ?? session.cwd, sessionId: session.id, exitCode, startedAt };
}

/** A snapshot as the service describes it. */
export function describeSnapshot(snapshot: StoredSnapshot): Json {
  const { id, sessionId, createdAt, status, expiresAt, method } = snapshot;
  const at = { createdAt, updatedAt: createdAt, ...(expiresAt !== undefined && { expiresAt }) };
  return { id, sourceSessionId: sessionId, region: "iad1", status, sizeBytes: 1, creationMethod: method, ...at };
}

/** What the service says of a sandbox together with its session. */
export function describeBoth(sandbox: StoredSandbox): Json {
  const { session } = sandbox;
  return { sandbox: describeSandbox(sandbox), session: describeSession(session), routes: session.routes };
}

/** Answers have another form than requests: the SDK refuses the form of a request. */
function policyAnswer(policy: Json): Json {
  if ("mode" in policy) return policy;
  const { allow } = policy;
  return { mode: "custom", allowedDomains: Array.isArray(allow) ? allow : Object.keys((allow as object) ?? {}) };
}

/** One page of a list; the cursor is the place of the first that was left out. */
export function page<T>(all: readonly T[], query: URLSearchParams): { items: T[]; pagination: Json } {
  const from = Number(query.get("cursor") ?? 0);
  const limit = Number(query.get("limit") ?? 50);
  const items = all.slice(from, from + limit);
  const next = from + limit < all.length ? String(from + limit) : null;
  return { items, pagination: { count: items.length, next } };
}

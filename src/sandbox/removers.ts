import type { Resource } from "./record.js";

/** Takes away one resource, idempotently; throws when it is still there. */
export type Remover = (resource: Resource) => Promise<void>;

const loadLocal = async (): Promise<Remover> => (await import("./local/cleanup.js")).removeResource;

/** Which backend's code removes which kind of resource. */
export const REMOVERS: Readonly<Record<string, () => Promise<Remover>>> = {
  directory: loadLocal,
  worktree: loadLocal,
  branch: loadLocal,
  cgroup: loadLocal,
};

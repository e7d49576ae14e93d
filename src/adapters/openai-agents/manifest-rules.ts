import { isAbsolute } from "node:path";
import type { Entry, Manifest } from "@openai/agents-core/sandbox";
import type { Mount } from "../../../contracts/types.js";
import type { OpenOptions } from "../../sandbox.js";
import { agents, internal, sandboxes } from "./load-agents.js";
import { unsupported } from "./sdk-error.js";

/** Refuses what no sandbox of ours can have: accounts, groups of files, and mounts of storage services. */
export function assertManifestSupported(manifest: Manifest): void {
  if (manifest.users.length > 0) throw unsupported("manifest.users", "manifest users yet");
  if (manifest.groups.length > 0) throw unsupported("manifest.groups", "manifest groups yet");
  for (const { logicalPath, entry } of manifest.iterEntries()) assertEntrySupported(logicalPath, entry);
  for (const { logicalPath, mountPath } of manifest.mountTargets()) {
    if (!internal.isUnderPosixPath(mountPath, manifest.root)) continue;
    throw unsupported(
      "entry.mount",
      `mounts within the workspace, where a mount point would stay behind: "${logicalPath}"; give it a mountPath outside of ${manifest.root}`,
    );
  }
}

/** Refuses limits that the SDK's own clients refuse. There are none to keep: everything is put into the sandbox in a few calls. */
export function assertConcurrencyLimits(limits: unknown): void {
  for (const each of Object.values(limits ?? {})) {
    if (each === undefined || (typeof each === "number" && Number.isFinite(each) && each >= 1)) continue;
    throw new agents.UserError("Sandbox concurrency limits must be positive numbers.");
  }
}

/** Refuses a single entry that no sandbox of ours can have. */
export function assertEntrySupported(path: string, entry: Entry): void {
  if (entry.group !== undefined) throw unsupported("entry.group", `sandbox entry group ownership yet: ${path}`);
  if (sandboxes.isMount(entry) && bindSource(entry) === undefined) {
    throw unsupported("entry.mount", `mounts of the type ${entry.type}: "${path}"`);
  }
}

/** Refuses mounts and grants of host paths in a manifest for a sandbox that is open: they can only be made with it. */
export function assertNoNewMounts(manifest: Manifest): void {
  const [mount] = manifest.mountTargets();
  if (mount !== undefined) throw unsupported("entry.mount", `mounts in an open sandbox: "${mount.logicalPath}"`);
  const grant = manifest.extraPathGrants.find(({ hostPath }) => hostPath !== undefined);
  if (grant === undefined) return;
  const { path } = grant;
  throw unsupported("manifest.extraPathGrants.hostPath", `host paths in an open sandbox: ${path}`, { path });
}

/** The options of a sandbox for a manifest: its root is the work directory, its mounts and granted host paths are mounted. */
export function withManifest(options: OpenOptions, manifest: Manifest): OpenOptions {
  const mounts = [...(options.mounts ?? []), ...mountsOf(manifest)];
  const isGranted = manifest.extraPathGrants.length > 0;
  return {
    ...options,
    workDir: manifest.root,
    ...(mounts.length > 0 && { mounts }),
    // The SDK confines file tools to the workspace and what is granted; where nothing is, the sandbox checks links as well.
    ...(isGranted && options.paths === undefined && { paths: "sandbox" as const }),
  };
}

function mountsOf(manifest: Manifest): Mount[] {
  const bound = manifest.mountTargetsForMaterialization().flatMap(({ entry, mountPath }) => {
    const source = bindSource(entry);
    return source === undefined ? [] : [{ source, target: mountPath, writable: entry.readOnly === false }];
  });
  const granted = manifest.extraPathGrants.flatMap(({ path, hostPath, readOnly }) =>
    hostPath === undefined ? [] : [{ source: hostPath, target: path, writable: !readOnly }],
  );
  return [...bound, ...granted];
}

/** The host directory of a mount that is one. */
function bindSource(entry: Entry): string | undefined {
  if (entry.type !== "mount" || typeof entry.source !== "string" || !isAbsolute(entry.source)) return undefined;
  return (entry.mountStrategy?.type ?? "local_bind") === "local_bind" ? entry.source : undefined;
}

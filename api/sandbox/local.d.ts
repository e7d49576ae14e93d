declare function capabilities(): Capabilities;

declare const conformance: NonNullable<BackendModule["conformance"]>;

declare function localCapabilities(
  isolation?: "required" | "none",
  git?: boolean,
  renames?: NonNullable<Capabilities["renames"]>,
): Capabilities;

declare function open(opts: SandboxOptions): Promise<Sandbox>;

declare function probe(): Promise<Finding[]>;

declare function removeResource(resource: Resource): Promise<void>;

declare function removeSnapshot({ id, sandboxId, gitDir, ref, commit, archive }: SnapshotRecord): Promise<void>;

declare function trimCache(maxBytes: number): Promise<string[]>;

export {
  capabilities,
  conformance,
  createLocalSandbox,
  localCapabilities,
  open,
  probe,
  removeResource,
  removeSnapshot,
  trimCache,
};

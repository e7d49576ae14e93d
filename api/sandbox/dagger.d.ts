declare function capabilities(): Capabilities;

declare const conformance: NonNullable<BackendModule["conformance"]>;

declare function createDaggerSandbox(opts?: SandboxOptions): Promise<Sandbox>;

declare function daggerCapabilities(git?: boolean): Capabilities;

declare function open(opts: SandboxOptions): Promise<Sandbox>;

declare function probe(): Promise<Finding[]>;

declare function removeResource(resource: Resource): Promise<void>;

declare function removeSnapshot(record: SnapshotRecord): Promise<void>;

export {
  capabilities,
  conformance,
  createDaggerSandbox,
  daggerCapabilities,
  open,
  probe,
  removeResource,
  removeSnapshot,
};

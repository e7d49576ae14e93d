declare function capabilities(): Capabilities;

declare const conformance: NonNullable<BackendModule["conformance"]>;

declare function createVercelSandbox(opts?: SandboxOptions): Promise<Sandbox>;

declare function open(opts: SandboxOptions): Promise<Sandbox>;

declare function probe(): Promise<Finding[]>;

declare function removeResource(resource: Resource): Promise<void>;

declare function removeSnapshot(record: SnapshotRecord): Promise<void>;

export { capabilities, conformance, createVercelSandbox, open, probe, removeResource, removeSnapshot };

declare function buildSnapshot(name: string, onLog?: (line: string) => void): Promise<boolean>;

declare function capabilities(): Capabilities;

declare function checkPossible(opts: SandboxOptions): void;

declare const conformance: NonNullable<BackendModule["conformance"]>;

declare function createDaytonaSandbox(opts?: SandboxOptions): Promise<Sandbox>;

declare function listRemote(): Promise<RemoteSandboxInfo[]>;

declare function probeDaytona(): Promise<Finding[]>;

declare function removeResource(resource: Resource): Promise<void>;

declare function removeSnapshot({ details }: SnapshotRecord): Promise<void>;

export {
  buildSnapshot,
  capabilities,
  checkPossible as check,
  conformance,
  createDaytonaSandbox,
  createDaytonaSandbox as open,
  listRemote,
  probeDaytona as probe,
  removeResource,
  removeSnapshot,
};

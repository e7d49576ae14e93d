type LocalOptions = Readonly<Record<never, never>>;

declare global {
  interface GloveboxBackendOptions {
    local?: LocalOptions;
  }
}

declare const local: Backend;

declare function localCapabilities(
  isolation?: "required" | "none",
  git?: boolean,
  renames?: NonNullable<Capabilities["renames"]>,
  files?: Pick<SandboxOptions, "repo" | "baseDir" | "workspace" | "limits">,
): Capabilities;

export { LocalOptions, createLocalSandbox, local, localCapabilities };

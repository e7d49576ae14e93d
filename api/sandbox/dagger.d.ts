declare function createDaggerSandbox(opts?: SandboxOptions): Promise<Sandbox>;

declare const dagger: Backend;

declare function daggerCapabilities(git?: boolean): Capabilities;

export { DaggerOptions, DaggerService, createDaggerSandbox, dagger, daggerCapabilities };

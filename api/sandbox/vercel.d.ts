declare function createVercelSandbox(opts?: SandboxOptions): Promise<Sandbox>;

declare const vercel: Backend;

export { VercelOptions, createVercelSandbox, vercel };

declare function createDaytonaSandbox(opts?: SandboxOptions): Promise<Sandbox>;

declare const daytona: Backend;

export { DaytonaOptions, createDaytonaSandbox, daytona };

interface ConformanceCase {
  readonly id: string;
  readonly title: string;
  readonly requirement: string;
  readonly options?: SandboxOptions;
  readonly closes?: boolean;
  readonly shares?: boolean;
  readonly exclusive?: boolean;
  needs?(capabilities: Capabilities, harness: ConformanceHarness): string | undefined;
  refused?(context: ConformanceContext): Promise<void>;
  run(context: ConformanceContext): Promise<void>;
}

interface ConformanceContext {
  readonly harness: ConformanceHarness;
  readonly sandbox: Sandbox;
  open(opts?: SandboxOptions): Promise<Sandbox>;
  hostDirectory(): Promise<string>;
  defer(cleanUp: () => Promise<unknown>): void;
  skip(reason: string): never;
}

interface ConformanceHarness {
  readonly backend: string;
  open(opts?: SandboxOptions): Promise<Sandbox>;
  remove?(id: string): Promise<void>;
  readonly skips?: Readonly<Record<string, string>>;
  census?(): Promise<string[]>;
  readonly host?: ConformanceHost;
}

interface ConformanceHost {
  directoryOf?(sandbox: Sandbox): string | undefined;
  sharesNetwork?: boolean;
  hasHttpPorts?: boolean;
  sever?(sandbox: Sandbox): Promise<void>;
}

interface ConformanceOptions {
  only?: readonly string[];
  onResult?(result: ConformanceResult): void;
  concurrency?: number;
  caseTimeout?: number;
}

interface ConformanceReport {
  readonly backend: string;
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  readonly results: readonly ConformanceResult[];
}

interface ConformanceResult {
  readonly id: string;
  readonly status: "passed" | "failed" | "skipped";
  readonly reason?: string;
  readonly durationMs: number;
}

interface SandboxPool {
  take(): Promise<Sandbox>;
  give(sandbox: Sandbox): Promise<void>;
  close(): Promise<void>;
}

declare const conformanceCases: readonly ConformanceCase[];

declare function createSandboxPool(harness: ConformanceHarness): SandboxPool;

declare function formatReport(report: ConformanceReport): string;

declare function runConformance(harness: ConformanceHarness, opts?: ConformanceOptions): Promise<ConformanceReport>;

declare function runConformanceCase(
  conformanceCase: ConformanceCase,
  harness: ConformanceHarness,
  opts?: {
    caseTimeout?: number;
    pool?: SandboxPool;
  },
): Promise<ConformanceResult>;

export {
  type ConformanceCase,
  type ConformanceContext,
  type ConformanceHarness,
  type ConformanceHost,
  type ConformanceOptions,
  type ConformanceReport,
  type ConformanceResult,
  type SandboxPool,
  conformanceCases,
  createSandboxPool,
  formatReport,
  runConformance,
  runConformanceCase,
};

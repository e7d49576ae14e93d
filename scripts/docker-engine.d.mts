/** An engine of a test run. */
export interface TestEngine {
  readonly host: string;
  readonly folder: string;
  readonly keeper: number;
  /** Its process now; another one after it was killed. */
  daemon(): number | undefined;
}
export function whyNoEngine(): string | undefined;
export function startEngine(
  folder: string,
  opts?: { leasePid?: number; dataSize?: number; env?: Record<string, string> },
): Promise<TestEngine>;
export function describeEngine(folder: string): TestEngine;
export function stopEngine(engine: TestEngine): Promise<void>;
export function waitForEngine(folder: string): Promise<void>;

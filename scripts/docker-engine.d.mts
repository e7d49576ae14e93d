/** A running engine. */
export interface TestEngine {
  readonly host: string;
  readonly folder: string;
  readonly keeper: number;
  /** Its current process; a new one after a restart. */
  daemon(): number | undefined;
}
export function whyNoEngine(): string | undefined;
export function startEngine(
  folder: string,
  opts?: { leasePid?: number; dataSize?: number; env?: Record<string, string> },
): Promise<TestEngine>;
export function describeEngine(folder: string): TestEngine;
export function stopEngine(engine: TestEngine): Promise<void>;
export function waitForEngine(folder: string, keeper?: undefined, timeout?: number): Promise<void>;

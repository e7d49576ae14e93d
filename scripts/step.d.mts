export function step(
  title: string,
  work: (progress: (phase: string) => void) => unknown,
  opts?: { isBeside?: boolean },
): Promise<void>;

/** What the work returns; undefined if it fails, whatever the reason. */
export function attempt<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}

/** Merges new durations, rounded and sorted by name. Similar ones don't change. */
export declare function mergeDurations(
  recorded: Readonly<Record<string, number>>,
  measured: Readonly<Record<string, number>>,
): Record<string, number>;
/** The slowest files, one per line. */
export declare function slowestFiles(measured: Readonly<Record<string, number>>, count?: number): string[];

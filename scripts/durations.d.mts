/** New durations rounded and put in, sorted by name. What took about as long as before stays. */
export declare function mergeDurations(
  recorded: Readonly<Record<string, number>>,
  measured: Readonly<Record<string, number>>,
): Record<string, number>;
/** The files that took longest, a line each. */
export declare function slowestFiles(measured: Readonly<Record<string, number>>, count?: number): string[];

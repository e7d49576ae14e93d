import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** The folder of the repository. */
export const root: string = fileURLToPath(new URL("../../..", import.meta.url));

/** A file that takes so many milliseconds gets a process of its own: where much is started, a small process is cheaper. */
const OWN_PROCESS_FROM = 8_000;

/** How many milliseconds a test file takes, as `npm run test:durations` wrote them down. */
export function readDurations(): Record<string, number> {
  return JSON.parse(readFileSync(join(root, "tests", "durations.json"), "utf8")) as Record<string, number>;
}

/** Every test file, by its path from the root of the repository. */
export function testFiles(): string[] {
  const names = readdirSync(join(root, "tests"), { recursive: true, encoding: "utf8" });
  return names
    .filter((name) => name.endsWith(".test.ts") && !name.includes("node_modules"))
    .map((name) => `tests/${name}`);
}

/** The test files that share their process with no other. */
export function filesWithOwnProcess(): string[] {
  const durations = readDurations();
  return testFiles().filter((file) => isApart(readFileSync(join(root, file), "utf8"), durations[file]));
}

/** Whether a test file has its own process: when it takes long, or leaves something behind and has a line `// own process: <reason>`. */
export function isApart(text: string, duration = 0): boolean {
  return duration >= OWN_PROCESS_FROM || /^\/\/ own process: \w/m.test(text);
}

/** Test files in the order in which they are started: new ones first, as nobody knows how long they take, then the longest. */
export function longestFirst<T>(files: readonly T[], durationOf: (file: T) => number | undefined): T[] {
  const rank = (file: T): number => durationOf(file) ?? Number.POSITIVE_INFINITY;
  return files.toSorted((a, b) => (rank(a) === rank(b) ? 0 : rank(b) - rank(a)));
}

import type { AgentDriver } from "../types.js";

/** Finds the first number of the form 1.2.3 in what a program printed. */
export function findVersion(text: string): string | undefined {
  return /\d+\.\d+\.\d+/.exec(text)?.[0];
}

function isOlder(version: string, than: string): boolean {
  const [a, b] = [version, than].map((text) => text.split(".").map(Number));
  for (let at = 0; at < 3; at += 1) {
    const difference = (a?.[at] ?? 0) - (b?.[at] ?? 0);
    if (difference !== 0) return difference < 0;
  }
  return false;
}

/** What is wrong with the version of an agent's program: too old to be supported, or older than every version that was tried. */
export function versionFault(
  { name, minVersion, tried = [] }: AgentDriver,
  version: string,
): { isTooOld: boolean; message: string } | undefined {
  if (minVersion !== undefined && isOlder(version, minVersion)) {
    return { isTooOld: true, message: `${name} ${version} is too old; ${minVersion} or later is needed` };
  }
  const [oldest] = tried;
  if (oldest === undefined || !isOlder(version, oldest)) return undefined;
  return { isTooOld: false, message: `${name} ${version} is older than ${oldest}, the oldest version that was tried` };
}

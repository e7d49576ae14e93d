const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
/** Node's timers take no more. */
const LONGEST = 2_147_483_647;

/** A time in flags and documents: a number and its unit. */
export const DURATION_PATTERN = "^\\d+(\\.\\d+)?(ms|s|m|h|d)$";

/** Reads a time with its unit (`90s`, `1.5h`) as milliseconds, or takes milliseconds as they are; undefined if it is neither. */
export function parseDuration(value: number | string, longest: number = LONGEST): number | undefined {
  const [, digits, unit] = typeof value === "string" ? (/^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(value) ?? []) : [];
  const time = typeof value === "number" ? value : Math.round(Number(digits) * (UNITS[unit ?? ""] ?? Number.NaN));
  return Number.isFinite(time) && time >= 1 && time <= longest ? time : undefined;
}

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };
/** Node's timers take no more. */
const LONGEST = 2_147_483_647;

/** Reads milliseconds or a number with a unit, for example `90s`; undefined when it is neither. */
export function parseDuration(value: number | string): number | undefined {
  const [, digits, unit] = typeof value === "string" ? (/^(\d+(?:\.\d+)?)(ms|s|m|h)$/.exec(value) ?? []) : [];
  const time = typeof value === "number" ? value : Math.round(Number(digits) * (UNITS[unit ?? ""] ?? Number.NaN));
  return Number.isFinite(time) && time >= 1 && time <= LONGEST ? time : undefined;
}

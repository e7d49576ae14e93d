import * as is from "../../util/schema.js";
import { invalidArgument, type Schema } from "../../util/schema.js";

const SIZE = /^(\d+(?:\.\d+)?)([kmgt])(?:i?b)?$/i;
const SIZE_PATTERN = "^\\d+(\\.\\d+)?[kmgtKMGT](i?[bB])?$";
const UNITS: Readonly<Record<string, number>> = { k: 1024, m: 1024 ** 2, g: 1024 ** 3, t: 1024 ** 4 };
const MAX_LIFETIME = 30 * 86_400_000;

/** A number of bytes, or a text such as `512m`. */
export const size: Schema<number | string> = quantity(
  SIZE_PATTERN,
  toBytes,
  Number.MAX_SAFE_INTEGER,
  "a size such as 512m",
);

/** Milliseconds, or a text such as `2h`: at most 30 days. */
export const lifetime: Schema<number | string> = quantity(
  is.DURATION_PATTERN,
  toMilliseconds,
  MAX_LIFETIME,
  "a time such as 2h, at most 30d",
);

/** The bytes of a checked size. */
export function toBytes(value: number | string): number {
  if (typeof value === "number") return value;
  const [, number = "", unit = ""] = SIZE.exec(value) ?? [];
  return Math.round(Number(number || Number.NaN) * (UNITS[unit.toLowerCase()] ?? Number.NaN));
}

/** The milliseconds of a checked time. */
export function toMilliseconds(value: number | string): number {
  return is.parseDuration(value, MAX_LIFETIME) ?? Number.NaN;
}

function quantity(
  pattern: string,
  convert: (value: number | string) => number,
  most: number,
  expected: string,
): Schema<number | string> {
  const check = (value: unknown, name: string): void => {
    const number = typeof value === "number" || typeof value === "string" ? convert(value) : Number.NaN;
    if (!Number.isSafeInteger(number) || number < 1 || number > most) throw invalidArgument(name, expected, value);
  };
  return is.custom(check, {
    oneOf: [
      { type: "integer", minimum: 1, maximum: most },
      { type: "string", pattern },
    ],
  });
}

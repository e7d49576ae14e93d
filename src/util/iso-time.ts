/**
 * The text of a moment, as `Date.toISOString` writes it: by default of now. The first `toISOString` of a process looks for the
 * machine's time zone, which takes 1 to 9 ms that a short command line notices.
 */
export function isoTime(milliseconds: number = Date.now()): string {
  const date = new Date(milliseconds);
  const day = [pad(date.getUTCFullYear(), 4), pad(date.getUTCMonth() + 1), pad(date.getUTCDate())].join("-");
  const time = [pad(date.getUTCHours()), pad(date.getUTCMinutes()), pad(date.getUTCSeconds())].join(":");
  return `${day}T${time}.${pad(date.getUTCMilliseconds(), 3)}Z`;
}

function pad(value: number, length = 2): string {
  return String(value).padStart(length, "0");
}

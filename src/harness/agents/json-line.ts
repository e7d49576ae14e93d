/** An object that came from an agent: untrusted, so nothing about its fields is taken for granted. */
export type Untrusted = Readonly<Record<string, unknown>>;

/** Reads a line as a JSON object; undefined when it isn't one. */
export function parseLine(line: string): Untrusted | undefined {
  if (!line.startsWith("{")) return undefined;
  try {
    return asRecord(JSON.parse(line));
  } catch {
    return undefined; // a line of plain text between the events
  }
}

/** A value as an object; undefined when it isn't one. */
export function asRecord(value: unknown): Untrusted | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Untrusted) : undefined;
}

/** A list of objects; anything else is left out. */
export function asRecords(value: unknown): Untrusted[] {
  return Array.isArray(value) ? value.map(asRecord).filter((item) => item !== undefined) : [];
}

/** A text that is not empty. */
export function asText(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** A number that counts something; sums of such numbers stay numbers. */
export function asCount(value: unknown): number | undefined {
  return typeof value === "number" && value >= 0 && value <= Number.MAX_SAFE_INTEGER ? value : undefined;
}

/** A number of whole things. */
export function asWhole(value: unknown): number | undefined {
  return Number.isInteger(value) ? asCount(value) : undefined;
}

const MOST_SHOWN = 200;

/** What a tool was called with, on one short line. */
export function summarize(input: unknown): string {
  const record = asRecord(input);
  const telling = ["command", "file_path", "filePath", "path", "pattern", "query", "url", "description"];
  const found = telling.map((key) => asText(record?.[key])).find((text) => text !== undefined);
  const line = (found ?? (input === undefined ? "" : (JSON.stringify(input) ?? ""))).replace(/\s+/g, " ").trim();
  return line.length > MOST_SHOWN ? `${line.slice(0, MOST_SHOWN)}…` : line;
}

/** Fields that only code has. */
const STEPS = ["exec", "check"];

/**
 * A blueprint in code as a document would have it, so that one schema is enough for both: functions stand for texts, steps
 * for programs, drivers for their names.
 */
export function toDocument(value: unknown, key = ""): unknown {
  if (typeof value === "function") return "function";
  if (Array.isArray(value)) return value.map((item) => toDocument(item));
  if (typeof value !== "object" || value === null) return value;
  if (key === "agent") return (value as { name?: unknown }).name;
  const entries = Object.entries(value).flatMap(([name, item]): [string, unknown][] => {
    if (item === undefined || (name === "skip" && typeof item === "function")) return [];
    if (STEPS.includes(name) && typeof item === "function") return [["run", ["function"]]];
    return [[name, toDocument(item, name)]];
  });
  return Object.fromEntries(entries);
}

/** A result as readable lines. */
export function formatResult({ name, rows, goals, notes = [] }) {
  const shown = rows.map((row) => [
    row.variant,
    figure(row.p50, row.unit),
    figure(row.p95, row.unit),
    `${row.samples}`,
  ]);
  const table = columns([["", "p50", "p95", "n"], ...shown]);
  return [name, ...table.map((line) => `  ${line}`), ...goals.flatMap(goalLines), ...notes.map((note) => `  ${note}`)];
}

/** A number with its unit. */
export function figure(value, unit) {
  const digits = Number.isInteger(value) || value >= 100 ? 0 : value >= 10 ? 1 : value >= 0.1 ? 2 : 4;
  if (unit === "") return String(value);
  return `${value.toFixed(digits)}${unit === "x" ? "x" : ` ${unit}`}`;
}

/** The text of a goal. */
export function limitOf({ atMost, atLeast, unit }) {
  const limit = (value) => (unit === "x" ? `${value}x` : `${value} ${unit}`.trim());
  return atMost === undefined ? `>= ${limit(atLeast)}` : `<= ${limit(atMost)}`;
}

function goalLines(goal) {
  const { what, value, unit, against, reached, floor } = goal;
  const beside = against === undefined ? "" : ` of ${against}`;
  const lines = [
    `  ${reached ? "reached    " : "NOT REACHED"} ${what}: ${figure(value, unit)}${beside}, ${limitOf(goal)}`,
  ];
  if (floor) lines.push(`              floor: ${floor.variant}, ${figure(floor.p50, floor.unit)}`);
  return lines;
}

function columns(rows) {
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)));
  return rows.map((row) =>
    row.map((cell, column) => (column === 0 ? cell.padEnd(widths[0]) : cell.padStart(widths[column]))).join("  "),
  );
}

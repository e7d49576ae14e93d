/** The last panic in a log, with the stack's first lines, or else the last lines. */
export function lastWords(log) {
  const lines = log.split("\n");
  const panic = lines.findLastIndex((line) => /^(panic|fatal error|unexpected fault)/.test(line));
  return (panic === -1 ? lines.slice(-10) : lines.slice(panic, panic + 20)).join("\n");
}

/** A failed step; its output is already on the screen. */
export class StepFailed extends Error {}

/**
 * Prints one line for a piece of work: its name, the result and the time it took. Concurrent work is shown only when it is
 * done. `work` gets a function that prints its progress, one line for each new phase.
 */
export async function step(title, work, { isBeside = false } = {}) {
  const startedAt = performance.now();
  if (process.stdout.isTTY && !isBeside) process.stdout.write(`  ${title} ...`);
  let shown;
  const progress = (phase) => {
    if (phase !== shown) line("...", title, startedAt, phase);
    shown = phase;
  };
  try {
    const note = await work(progress);
    line("ok", title, startedAt, typeof note === "string" ? note : "");
  } catch (error) {
    line("FAILED", title, startedAt, "");
    console.log(indent(error instanceof StepFailed ? error.message : (error?.stack ?? String(error))));
    throw new StepFailed(title);
  }
}

/** Turns a failed quiet run into a failed step that shows the program's output. */
export function expectSuccess(result, what) {
  if (result.code !== 0) throw new StepFailed(`${what} ended with ${result.signal ?? result.code}\n${result.output}`);
}

function line(mark, title, startedAt, note) {
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  const start = process.stdout.isTTY ? "\r\x1b[K" : "";
  console.log(`${start}  ${mark.padEnd(6)} ${title}${note ? `: ${note}` : ""} (${seconds} s)`);
}

function indent(text) {
  return text.trimEnd().replace(/^/gm, "      ");
}

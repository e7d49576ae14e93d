/** A step that did not work; its output is on the screen already. */
export class StepFailed extends Error {}

/**
 * Shows one line for a piece of work: its name, then what came of it and how long it took. Work that goes on beside other
 * work is shown only once it is done. `work` may print its progress, a line for each new phase, with the function that it gets.
 */
export async function step(title, work, { isBeside = false } = {}) {
  const began = performance.now();
  if (process.stdout.isTTY && !isBeside) process.stdout.write(`  ${title} ...`);
  let shown;
  const progress = (phase) => {
    if (phase !== shown) line("...", title, began, phase);
    shown = phase;
  };
  try {
    const note = await work(progress);
    line("ok", title, began, typeof note === "string" ? note : "");
  } catch (error) {
    line("FAILED", title, began, "");
    console.log(indent(error instanceof StepFailed ? error.message : (error?.stack ?? String(error))));
    throw new StepFailed(title);
  }
}

/** Turns a quiet run that did not succeed into a failed step that shows what the program said. */
export function expectSuccess(result, what) {
  if (result.code !== 0) throw new StepFailed(`${what} ended with ${result.signal ?? result.code}\n${result.output}`);
}

function line(mark, title, began, note) {
  const seconds = ((performance.now() - began) / 1000).toFixed(1);
  const start = process.stdout.isTTY ? "\r\x1b[K" : "";
  console.log(`${start}  ${mark.padEnd(6)} ${title}${note ? `: ${note}` : ""} (${seconds} s)`);
}

function indent(text) {
  return text.trimEnd().replace(/^/gm, "      ");
}

import { writeFileSync } from "node:fs";

/** Records the result of each case of the conformance kit for `conformance.mjs`. */
// biome-ignore lint/style/noDefaultExport: vitest requires it for a reporter
export default class ConformanceReporter {
  onTestRunEnd(modules) {
    const results = {};
    for (const module of modules) {
      for (const test of module.children.allTests()) {
        const backend = /conformance of ([\w-]+)/.exec(test.fullName)?.[1];
        const id = /([a-z][\w-]*(?:\.[\w-]+)+): /.exec(test.name)?.[1];
        if (backend === undefined) continue;
        results[backend] ??= [];
        const { state, note, errors } = test.result();
        if (id !== undefined) results[backend].push({ id, state, reason: note ?? reasonOf(errors?.[0]) });
        else if (state === "skipped") results[backend].notRun = note;
      }
      for (const error of module.errors()) console.error(String(error.message));
    }
    const entries = Object.entries(results).map(([backend, cases]) => [backend, { cases, notRun: cases.notRun }]);
    writeFileSync(process.env.GLOVEBOX_CONFORMANCE_FILE, JSON.stringify(Object.fromEntries(entries)));
  }
}

/** The reason of a failed case is in the value that the test compared. */
function reasonOf(error) {
  return (
    /reason: '([^\n]*)'|"reason": "([^\n]*)"/
      .exec(String(error?.actual ?? ""))
      ?.slice(1)
      .find(Boolean) ?? error?.message
  );
}

import { writeFileSync } from "node:fs";
import { createLocalSandbox, local } from "../dist/src/sandbox/local.js";
import { removeSandbox } from "../dist/src/sandbox.js";
import { formatReport, runConformance } from "../dist/src/testing.js";

/** Runs the conformance kit on the built local backend: `run-conformance.mjs required|none [report.json [concurrency]]`. */
const [isolation = "required", file, concurrency = "4"] = process.argv.slice(2);
const user = process.getuid?.() === 0 ? "root" : "user";
const harness = {
  backend: `local-${isolation}-${user}`,
  open: (options = {}) => createLocalSandbox(options.id === undefined ? { isolation, ...options } : options),
  remove: removeSandbox,
  skips: local.conformance?.skips,
  host: { directoryOf: ({ workDir }) => workDir, sharesNetwork: true },
};

const report = await runConformance(harness, { concurrency: Number(concurrency) });
console.log(formatReport(report));
if (file) writeFileSync(file, JSON.stringify(report));
process.exit(report.failed > 0 ? 1 : 0);

import { rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runHarness } from "../../dist/src/harness.js";
import { peakMemory } from "./processes.mjs";

/** Prints the peak growth of this process in MB while a node prints 200 MB. */
const LOG_BYTES = 200 * 2 ** 20;
const [repo, out] = process.argv.slice(2);

const start = (shell) =>
  runHarness({
    blueprint: { name: "log", nodes: [{ id: "talk", kind: "command", shell }] },
    ...{ repo, out, intent: "measure", sandboxType: "local", keep: "never" },
  });

await start("true");
// Resets the kernel's peak value of this process's memory.
writeFileSync("/proc/self/clear_refs", "5");
const before = peakMemory();
const report = await start(`yes 'a line as long as the lines of a build are, more or less' | head -c ${LOG_BYTES}`);
const extra = peakMemory() - before;
const path = join(out, report.runId, "nodes", "1-talk", "stdout.log");
const { size } = statSync(path);
rmSync(path);
if (report.status !== "success" || size !== LOG_BYTES) throw new Error(`${report.status}, ${size} bytes`);
process.stdout.write(String(extra));

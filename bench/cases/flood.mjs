import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createLocalSandbox } from "../../dist/src/index.js";
import { goal, interleave, ratioGoal, row } from "../parts/measure.mjs";
import { descendants, peakMemory, proportionalMemory } from "../parts/processes.mjs";

const FILE = 2 ** 26;

/** A command that writes 2 GB, of which 64 KiB are kept. */
export async function measure({ isQuick, scratch }) {
  const sandbox = await createLocalSandbox();
  const size = isQuick ? 2 ** 29 : 2 ** 31;
  // Reads the same file repeatedly: it stays in memory, so that nothing waits for the disk.
  const bytes = Buffer.alloc(FILE, "glovebox\n");
  const file = join(scratch, "flood.bytes");
  writeFileSync(file, bytes);
  await sandbox.writeFile("flood", bytes);
  const catOf = (path) => ["/bin/cat", ...Array(size / FILE).fill(path)];
  const extra = [];
  try {
    const variants = {
      "glovebox, 64 KiB kept": async () => {
        forgetPeak();
        const before = peakMemory();
        const outside = proportionalMemory(descendants());
        const began = performance.now();
        const result = await sandbox.exec({ argv: catOf("flood"), maxOutput: 65_536 });
        const seconds = (performance.now() - began) / 1000;
        if (result.bytes.stdout !== size || !result.truncated.stdout) throw new Error("not all of it arrived");
        extra.push(peakMemory() - before + Math.max(0, proportionalMemory(descendants()) - outside));
        return size / 2 ** 20 / seconds;
      },
      "glovebox, followed": async () => {
        let arrived = 0;
        const began = performance.now();
        const onStdout = (chunk) => {
          arrived += chunk.length;
        };
        await sandbox.exec({ argv: catOf("flood"), maxOutput: 65_536, onStdout });
        if (arrived !== size) throw new Error("not all of it was given");
        return size / 2 ** 20 / ((performance.now() - began) / 1000);
      },
      "cat into a Node pipe": async () => {
        const began = performance.now();
        await drain(catOf(file));
        return size / 2 ** 20 / ((performance.now() - began) / 1000);
      },
    };
    const samples = await interleave(variants, { rounds: isQuick ? 2 : 5 });
    const rows = Object.entries(samples).map(([variant, taken]) => row(variant, taken, "MB/s"));
    const memory = row("memory beyond what was there", extra.slice(1), "MB");
    const goals = [
      goal("memory for 2 GB of output", { value: memory.p95, unit: "MB", atMost: 100, ours: memory }),
      ratioGoal("throughput of 2 GB of output", { ours: rows[0], other: rows[2], atLeast: 0.5, floor: rows[2] }),
    ];
    return { rows: [...rows, memory], goals, notes: isQuick ? ["a quick run writes 512 MB"] : [] };
  } finally {
    await sandbox.teardown();
  }
}

function drain([program, ...args]) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ["ignore", "pipe", "ignore"] });
    let bytes = 0;
    child.stdout.on("data", (chunk) => {
      bytes += chunk.length;
    });
    child.once("error", reject);
    child.once("close", () => resolve(bytes));
  });
}

/** Resets the kernel's peak value of this process's memory. */
function forgetPeak() {
  writeFileSync("/proc/self/clear_refs", "5");
}

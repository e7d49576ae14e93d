import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { createLocalSandbox } from "../../dist/src/index.js";
import { goal, interleave, ratioGoal, row } from "../parts/measure.mjs";
import { descendants, peakMemory, proportionalMemory } from "../parts/processes.mjs";

/** A command that writes 2 GB, of which 64 KiB are kept. */
export async function measure({ isQuick }) {
  const sandbox = await createLocalSandbox();
  const size = isQuick ? 2 ** 29 : 2 ** 31;
  const argv = ["/usr/bin/head", "-c", String(size), "/dev/zero"];
  const extra = [];
  try {
    const variants = {
      "glovebox, 64 KiB kept": async () => {
        forgetPeak();
        const before = peakMemory();
        const outside = proportionalMemory(descendants());
        const began = performance.now();
        const result = await sandbox.exec({ argv, maxOutput: 65_536 });
        const seconds = (performance.now() - began) / 1000;
        if (result.bytes.stdout !== size || !result.truncated.stdout) throw new Error("not all of it arrived");
        extra.push(peakMemory() - before + Math.max(0, proportionalMemory(descendants()) - outside));
        return size / 2 ** 20 / seconds;
      },
      "head into a Node pipe": async () => {
        const began = performance.now();
        await drain(argv);
        return size / 2 ** 20 / ((performance.now() - began) / 1000);
      },
    };
    const samples = await interleave(variants, { rounds: isQuick ? 2 : 5 });
    const rows = Object.entries(samples).map(([variant, taken]) => row(variant, taken, "MB/s"));
    const memory = row("memory beyond what was there", extra.slice(1), "MB");
    const goals = [
      goal("memory for 2 GB of output", { value: memory.p95, unit: "MB", atMost: 100, ours: memory }),
      ratioGoal("throughput of 2 GB of output", { ours: rows[0], other: rows[1], atLeast: 0.5, floor: rows[1] }),
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

/** The kernel begins anew with its highest mark of this process's memory. */
function forgetPeak() {
  writeFileSync("/proc/self/clear_refs", "5");
}

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLocalSandbox } from "../../dist/src/index.js";
import { bwrapCommand } from "../parts/bwrap.mjs";
import { interleave, ratioGoal, row } from "../parts/measure.mjs";
import { openPeers } from "../parts/peers.mjs";
import { start } from "../parts/processes.mjs";

/** One short command after another in a sandbox that is open, against starting it in other ways. */
export async function measure({ isQuick, withPeers }) {
  const sandbox = await createLocalSandbox();
  const directory = await mkdtemp(join(tmpdir(), "bench-exec-"));
  const { peers, notes } = withPeers ? await openPeers(directory) : { peers: [], notes: [] };
  try {
    const variants = execVariants(sandbox, directory);
    for (const { name, exec } of peers) variants[name] = exec;
    const samples = await interleave(variants, { rounds: isQuick ? 60 : 400, warmup: 5 });
    const rows = Object.entries(samples).map(([variant, taken]) => row(variant, taken));
    return { rows, goals: execGoals(rows, 0.8), notes };
  } finally {
    for (const { close } of peers) await close();
    await sandbox.teardown();
    await rm(directory, { recursive: true });
  }
}

/** The ways to run a short command that are compared. */
export function execVariants(sandbox, directory) {
  const floorRuns = 20;
  return {
    "glovebox, true": async () => expectZero(await sandbox.exec({ argv: ["/bin/true"] })),
    "glovebox, echo": async () => expectZero(await sandbox.exec({ argv: ["/bin/echo", "hello"] })),
    "execFile, true": () => start("/bin/true"),
    "execFile, echo": () => start("/bin/echo", ["hello"]),
    "fresh bwrap, true": () => start(...bwrapCommand(directory, ["/bin/true"])),
    // What the kernel takes for it: a small shell that does nothing else, measured by itself.
    "small process, true": async () => {
      const script = `a=$(date +%s%N); i=0; while [ $i -lt ${floorRuns} ]; do /bin/true; i=$((i+1)); done; echo $(($(date +%s%N)-a))`;
      return Number((await start("/bin/sh", ["-c", script])).stdout) / 1e6 / floorRuns;
    },
  };
}

/** What is asked of a warm exec. */
export function execGoals(rows, share, where = "") {
  const of = (variant) => rows.find((each) => each.variant === variant);
  const floor = of("small process, true");
  const bwrap = of("fresh bwrap, true");
  const ours = of("glovebox, true");
  return [
    ratioGoal(`warm exec of true against execFile${where}`, {
      ours,
      other: of("execFile, true"),
      atMost: share,
      floor,
    }),
    ratioGoal(`warm exec of echo against execFile${where}`, {
      ours: of("glovebox, echo"),
      other: of("execFile, echo"),
      atMost: share,
      floor,
    }),
    ratioGoal(`warm exec of true against a fresh bwrap${where}`, {
      ours,
      other: bwrap,
      atMost: 1 / 5,
      floor,
    }),
  ];
}

function expectZero(result) {
  if (result.exitCode !== 0) throw new Error(`it ended with ${result.exitCode}: ${result.stderr}`);
}

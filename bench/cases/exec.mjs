import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLocalSandbox } from "../../dist/src/index.js";
import { bwrapCommand } from "../parts/bwrap.mjs";
import { openFloor } from "../parts/floor.mjs";
import { interleave, ratioGoal, row } from "../parts/measure.mjs";
import { openPeers } from "../parts/peers.mjs";
import { start } from "../parts/processes.mjs";

/** Warm-up calls of each variant: the first calls are slower, until their code is compiled. */
export const WARM = 100;
const FLOOR = "bare helper, true";

/** One short command after another in an open sandbox, against other ways to start it. */
export async function measure({ isQuick, withPeers, scratch }) {
  const sandbox = await createLocalSandbox();
  const floor = await openFloor(scratch);
  const directory = await mkdtemp(join(tmpdir(), "bench-exec-"));
  const { peers, notes } = withPeers ? await openPeers(directory) : { peers: [], notes: [] };
  try {
    const variants = execVariants(sandbox, directory, floor);
    for (const { name, exec } of peers) variants[name] = exec;
    const samples = await interleave(variants, { rounds: isQuick ? 60 : 400, warmup: WARM });
    const rows = Object.entries(samples).map(([variant, taken]) => row(variant, taken));
    return { rows, goals: execGoals(rows, 0.4), notes };
  } finally {
    for (const { close } of [...peers, floor]) await close();
    await sandbox.teardown();
    await rm(directory, { recursive: true });
  }
}

/** The compared ways to run a short command. */
export function execVariants(sandbox, directory, floor) {
  return {
    "glovebox, true": async () => expectZero(await sandbox.exec({ argv: ["/bin/true"] })),
    "glovebox, echo": async () => expectZero(await sandbox.exec({ argv: ["/bin/echo", "hello"] })),
    "execFile, true": () => start("/bin/true"),
    "execFile, echo": () => start("/bin/echo", ["hello"]),
    "fresh bwrap, true": () => start(...bwrapCommand(directory, ["/bin/true"])),
    ...(floor.exec && { [FLOOR]: floor.exec }),
  };
}

/** The goals for a warm exec. */
export function execGoals(rows, share, where = "") {
  const of = (variant) => rows.find((each) => each.variant === variant);
  const floor = of(FLOOR);
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

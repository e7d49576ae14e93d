import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { bwrapCommand } from "../parts/bwrap.mjs";
import { interleave, ratioGoal, row } from "../parts/measure.mjs";
import { start } from "../parts/processes.mjs";

const PROGRAM = fileURLToPath(new URL("../../dist/src/cli.js", import.meta.url));
/** The newer Node of the tests, if it is installed: it keeps the compiled code of the command line. */
const NEWER = fileURLToPath(
  new URL(`../../tests/runtimes/node_modules/node-linux-${process.arch}/bin/node`, import.meta.url),
);

/** The command line with one short command in a new sandbox, against a Node that does nothing. */
export async function measure({ isQuick }) {
  const directory = await mkdtemp(join(tmpdir(), "bench-cli-"));
  try {
    const node = (...args) => start(process.execPath, args);
    const variants = {
      "glovebox exec -- true": () => node(PROGRAM, "exec", "--", "true"),
      "glovebox --version": () => node(PROGRAM, "--version"),
      "node -e 0": () => node("-e", "0"),
      // What has to happen one after the other in any case.
      "node -e 0, then bwrap true": async () => {
        await node("-e", "0");
        await start(...bwrapCommand(directory, ["/bin/true"]));
      },
      ...(existsSync(NEWER) && {
        "glovebox exec -- true, newer Node": () => start(NEWER, [PROGRAM, "exec", "--", "true"]),
        "node -e 0, newer Node": () => start(NEWER, ["-e", "0"]),
      }),
    };
    const samples = await interleave(variants, { rounds: isQuick ? 8 : 40, warmup: 2 });
    const rows = Object.entries(samples).map(([variant, taken]) => row(variant, taken));
    const [exec, version, other, floor] = rows;
    return {
      rows,
      goals: [
        ratioGoal("glovebox exec -- true against node -e 0", { ours: exec, other, atMost: 1.6, floor }),
        ratioGoal("glovebox --version against node -e 0", { ours: version, other, atMost: 1.6, floor: other }),
      ],
    };
  } finally {
    await rm(directory, { recursive: true });
  }
}

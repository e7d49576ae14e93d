import { createLocalSandbox } from "../../dist/src/index.js";
import { goal, row } from "../parts/measure.mjs";
import { descendants, proportionalMemory } from "../parts/processes.mjs";

/** The memory of an idle sandbox outside Node: all its processes, with shared pages divided among them. */
export async function measure({ isQuick }) {
  const sandboxes = [];
  const alone = [];
  try {
    for (let n = 0; n < (isQuick ? 3 : 10); n++) {
      const before = proportionalMemory(descendants());
      const sandbox = await createLocalSandbox();
      sandboxes.push(sandbox);
      await sandbox.exec({ argv: ["/bin/true"] });
      if (n === 0) alone.push(proportionalMemory(descendants()) - before);
    }
    const each = proportionalMemory(descendants()) / sandboxes.length;
    const rows = [row("the only sandbox", alone, "MB"), row(`each of ${sandboxes.length}`, [each], "MB")];
    return {
      rows,
      goals: [goal("idle sandbox outside Node", { value: alone[0], unit: "MB", atMost: 3, ours: rows[0] })],
    };
  } finally {
    await Promise.all(sandboxes.map((sandbox) => sandbox.teardown()));
  }
}

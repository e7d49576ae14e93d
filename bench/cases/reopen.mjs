import { openSandbox } from "../../dist/src/index.js";
import { goal, interleave, row, timed } from "../parts/measure.mjs";

const OTHERS = 20;

/** Reopening a kept sandbox by its name among others, against opening a new one. */
export async function measure({ isQuick }) {
  const kept = [];
  const make = async (name) => {
    const sandbox = await openSandbox({ backend: "local", name, keep: true });
    await sandbox.writeFile("note.txt", name);
    await sandbox.teardown();
    kept.push(name);
  };
  const open = async (options) => {
    let sandbox;
    const took = await timed(async () => {
      sandbox = await openSandbox(options);
    });
    return { sandbox, took };
  };
  try {
    await make("the-one");
    for (let i = 0; i < OTHERS; i++) await make(`other-${i}`);
    const reopened = (id) => async () => {
      const { sandbox, took } = await open({ id });
      if ((await sandbox.readFile("note.txt")) !== "the-one") throw new Error("its files are not there");
      await sandbox.teardown();
      return took;
    };
    const { sandbox: first } = await open({ id: "the-one" });
    await first.teardown();
    const variants = {
      "glovebox, reopen by name": reopened("the-one"),
      "glovebox, reopen by id": reopened(first.id),
      "glovebox, open a new one": async () => {
        const { sandbox, took } = await open({ backend: "local" });
        await sandbox.teardown();
        return took;
      },
    };
    const samples = await interleave(variants, { rounds: isQuick ? 15 : 80, warmup: 3 });
    const rows = Object.entries(samples).map(([variant, taken]) => row(variant, taken));
    const [ours, , floor] = rows;
    return { rows, goals: [goal("reopen by name", { value: ours.p50, unit: "ms", atMost: 50, ours, floor })] };
  } finally {
    for (const id of kept) {
      const sandbox = await openSandbox({ id, keep: false });
      await sandbox.teardown();
    }
  }
}

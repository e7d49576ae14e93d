import { lstat, mkdir, mkdtemp, opendir, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLocalSandbox } from "../../dist/src/index.js";
import { goal, interleave, row } from "../parts/measure.mjs";

const ENTRIES = 10_000;

/** A listing of many entries with type, size and time, against the same on this machine without any check. */
export async function measure({ isQuick }) {
  const sandbox = await createLocalSandbox();
  const base = await mkdtemp(join(tmpdir(), "bench-listing-"));
  try {
    const made = await sandbox.shell(`mkdir many && cd many && seq ${ENTRIES} | sed 's/^/entry-/' | xargs touch`);
    if (made.exitCode !== 0) throw new Error(made.stderr);
    await mkdir(join(base, "many"));
    for (let i = 1; i <= ENTRIES; i++) await writeFile(join(base, "many", `entry-${i}`), "");
    const variants = {
      "glovebox, with details": () => sandbox.listDirectory("many", { details: true }).then(expectAll),
      "glovebox, names": () => sandbox.listDirectory("many").then(expectAll),
      "fs/promises, with details": () => listHere(join(base, "many")).then(expectAll),
      "fs/promises, names": () => readdir(join(base, "many")).then(expectAll),
    };
    const samples = await interleave(variants, { rounds: isQuick ? 10 : 60, warmup: 3 });
    const rows = Object.entries(samples).map(([variant, taken]) => row(variant, taken));
    const what = `list ${ENTRIES} entries with details`;
    return {
      rows,
      goals: [
        goal(what, { value: rows[0].p50, unit: "ms", atMost: 50, ours: rows[0], other: rows[2], floor: rows[3] }),
      ],
    };
  } finally {
    await sandbox.teardown();
    await rm(base, { recursive: true });
  }
}

async function listHere(path) {
  const names = [];
  for await (const { name } of await opendir(path)) names.push(name);
  return await Promise.all(names.map(async (name) => ({ name, ...(await lstat(join(path, name))) })));
}

function expectAll({ length }) {
  if (length !== ENTRIES) throw new Error(`${length} entries instead of ${ENTRIES}`);
}

import { mkdtemp, readdir, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createLocalSandbox } from "../../dist/src/index.js";
import { goal, interleave, row } from "../parts/measure.mjs";

const TEXT = "a small file\n".repeat(80);

/** Writing, reading and listing a small file: in the sandbox, without any check, and with a check that has a race. */
export async function measure({ isQuick }) {
  const sandbox = await createLocalSandbox();
  const base = await realpath(await mkdtemp(join(tmpdir(), "bench-files-")));
  try {
    await sandbox.writeFile("f.txt", TEXT);
    await writeFile(join(base, "f.txt"), TEXT);
    const checked = async (name) => {
      const path = join(base, name);
      const real = await realpath(path).catch(async () => join(await realpath(dirname(path)), name));
      if (real !== base && !real.startsWith(`${base}/`)) throw new Error("outside");
      return real;
    };
    const variants = {
      "glovebox, write": () => sandbox.writeFile("f.txt", TEXT),
      "fs/promises, write": () => writeFile(join(base, "f.txt"), TEXT),
      "realpath check, write": async () => writeFile(await checked("f.txt"), TEXT),
      "glovebox, read": () => sandbox.readFile("f.txt").then(expectText),
      "fs/promises, read": () => readFile(join(base, "f.txt"), "utf8").then(expectText),
      "realpath check, read": async () => readFile(await checked("f.txt"), "utf8").then(expectText),
      "glovebox, list": () => sandbox.listDirectory().then(() => undefined),
      "fs/promises, list": () => readdir(base).then(() => undefined),
      "realpath check, list": async () => void (await readdir(await checked("."))),
    };
    const samples = await interleave(variants, { rounds: isQuick ? 100 : 1000, warmup: 10 });
    const rows = Object.entries(samples).map(([variant, taken]) => row(variant, taken));
    const [ours, floor] = [rows[3], rows[4]];
    return {
      rows,
      goals: [goal("safe read of a small file", { value: ours.p50, unit: "ms", atMost: 1, ours, floor })],
    };
  } finally {
    await sandbox.teardown();
    await rm(base, { recursive: true });
  }
}

function expectText(text) {
  if (text !== TEXT) throw new Error("another text came back");
}

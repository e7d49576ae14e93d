import { execFileSync } from "node:child_process";
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, test } from "vitest";
import { type Acknowledged, createCrashPlace, takeCensus } from "../../support/git/crash-place.js";
import { compileSources } from "../../support/run/compiled.js";

let root: string;
let library: string;
let compiled: ReturnType<typeof compileSources>;
beforeAll(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "glovebox-faulty-")));
  library = join(root, "faulty-io.so");
  const source = fileURLToPath(new URL("../../support/probes/faulty-io.c", import.meta.url));
  execFileSync("cc", ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o", library, source]);
  compiled = compileSources({ withGuests: true });
  createCrashPlace(join(root, "first"), compiled.directory);
});
afterAll(() => {
  compiled.remove();
  rmSync(root, { recursive: true, force: true });
});

/** One line of what the child says. */
type Said = Partial<Acknowledged> & { wrong?: string; total?: number; told?: number };

describe.concurrent("[F-26] the n-th change of a file fails", () => {
  test.for([
    ["ledger", 1, "once", false],
    ["ledger", 1, "and so do all after it", true],
    ["sandbox", 17, "once", false],
    ["sandbox", 19, "and so do all after it", true],
  ] as const)(
    "in the life of a %s, for every %i-th n, %s: typed errors, whole records, no snapshot lost, nothing left",
    async ([life, step, _, isLasting], { expect }) => {
      const place = createCrashPlace(join(root, `${life}-${isLasting}-${process.pid}`), compiled.directory);
      const before = takeCensus(place, [], []);
      const control = join(root, `control-${life}-${isLasting}`);
      writeFileSync(control, Buffer.alloc(24));
      const options = { repo: place.repo };
      const job = JSON.stringify({ life, step, options, control, isLasting });
      const env = { LD_PRELOAD: library, FAULTY_IO: control, FAULTY_IO_BELOW: `${place.path}/` };
      const { code, output } = await place.start("faulty.mjs", [job], env).ended;
      const lines = output.split("\n").filter(Boolean);
      const said = lines.map((line) => JSON.parse(line) as Said);
      expect(said.filter(({ wrong }) => wrong !== undefined)).toEqual([]);
      const { total = 0, told = 0 } = said.at(-1) ?? {};
      expect({ code, isLong: total > 20, someAreTold: told > 2 }).toEqual({ code: 0, isLong: true, someAreTold: true });
      const acknowledged = said.filter((line): line is Acknowledged => line.acknowledged !== undefined);
      expect(acknowledged.length).toBeGreaterThanOrEqual(life === "sandbox" ? 2 : 0);
      const reaped = await place.start("reap.mjs", [JSON.stringify({ cache: 0 })]).ended;
      expect(JSON.parse(reaped.output)).toMatchObject({ kept: [], failed: [] });
      expect(takeCensus(place, [], acknowledged)).toEqual(before);
    },
  );
});

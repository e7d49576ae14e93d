import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import type { Capabilities } from "../../contracts/types.js";
import { capabilitiesOf } from "../../src/sandbox.js";
import { conformanceCases } from "../../src/testing.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const place = join(root, "conformance");

interface Kept {
  backend: string;
  capabilities?: Capabilities;
  counts: Record<string, number>;
  others: { id: string; outcome: string }[];
}

const results = readdirSync(place).map((name) => JSON.parse(readFileSync(join(place, name), "utf8")) as Kept);

describe("the readme's table of backends", () => {
  test("is that of the last results", async () => {
    await promisify(execFile)(process.execPath, [join(root, "scripts", "backends-readme.mjs"), "--check"]);
  });

  test.each(results)("$backend keeps what the table says, and failed nothing", async (kept) => {
    const here = await capabilitiesOf(kept.backend);
    // What can be limited, and why not, is a question of the machine.
    const other = { limits: [], reasons: {} };
    if (here !== undefined) expect({ ...kept.capabilities, ...other }).toEqual({ ...here, ...other });
    expect(kept.counts["failed"] ?? 0).toBe(0);
    const ids = conformanceCases.map(({ id }) => id);
    expect(kept.others.filter(({ id }) => !ids.includes(id))).toEqual([]);
  });
});

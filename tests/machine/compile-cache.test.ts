import { execFile } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ownVersion } from "../../src/util/own-version.js";
import { type Bench, createBench, program } from "../support/cli.js";
import { NODE_24, whyNoRuntime } from "../support/run/runtimes.js";

let bench: Bench;
beforeEach(() => {
  bench = createBench();
});
afterEach(() => bench.remove());

describe("the compiled code that Node keeps", () => {
  test("is in a private directory of the home, for one version of Glovebox", async ({ skip }) => {
    const why = whyNoRuntime(NODE_24.program);
    if (why !== undefined) skip(why);
    await runOnNode24("version");
    expect(existsSync(compiled())).toBe(false);

    mkdirSync(join(compiled(), "0.0.1"), { recursive: true, mode: 0o777 });
    writeFileSync(join(compiled(), "0.0.1", "old"), "");
    await runOnNode24("ls");
    expect(readdirSync(compiled())).toEqual([ownVersion()]);
    expect(statSync(compiled()).mode & 0o777).toBe(0o700);
    const kept = readdirSync(join(compiled(), ownVersion()), { recursive: true, withFileTypes: true });
    expect(kept.filter((entry) => entry.isFile()).length).toBeGreaterThan(2);
  });
});

function compiled(): string {
  return join(bench.env["GLOVEBOX_HOME"] ?? "", "compiled");
}

async function runOnNode24(verb: string): Promise<void> {
  await promisify(execFile)(NODE_24.program, [program, verb], { cwd: bench.path, env: bench.env });
}

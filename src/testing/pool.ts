import { randomUUID } from "node:crypto";
import type { Sandbox } from "../sandbox/types.js";
import { within } from "./assert.js";
import { scriptArgv } from "./script.js";
import type { ConformanceHarness, SandboxPool } from "./types.js";

/** Empties the work directory and prints `$1` when nothing is left: then the patterns stand for themselves. */
const TIDY = `word=$1
rm -rf ./* ./.[!.]* ./..?* 2>/dev/null || { chmod -R u+rwx . && rm -rf ./* ./.[!.]* ./..?*; }
set -- * .[!.]* ..?*
[ "$*" = "* .[!.]* ..?*" ] && printf %s "$word"`;
const BOUND = 60_000;

/** Keeps default sandboxes between cases that leave nothing but files, because opening one is most of such a case's time. */
export function createSandboxPool(harness: ConformanceHarness): SandboxPool {
  const idle: Sandbox[] = [];
  return {
    async take() {
      return idle.pop() ?? (await harness.open());
    },
    async give(sandbox) {
      if (await isTidy(sandbox)) idle.push(sandbox);
      else await within(BOUND, "teardown", sandbox.teardown());
    },
    // A teardown that fails is found by the cases that are about it.
    async close() {
      await Promise.allSettled(idle.splice(0).map((sandbox) => within(BOUND, "teardown", sandbox.teardown())));
    },
  };
}

async function isTidy(sandbox: Sandbox): Promise<boolean> {
  const word = randomUUID();
  try {
    // The files of a repository are not the case's: without them it is another sandbox.
    if (sandbox.capabilities.git) return false;
    const { exitCode, stdout } = await within(BOUND, "tidying up", sandbox.exec({ argv: scriptArgv(TIDY, word) }));
    return exitCode === 0 && stdout === word && (await within(BOUND, "processes", sandbox.processes())).length === 0;
  } catch {
    return false;
  }
}

import { randomUUID } from "node:crypto";
import type { Sandbox } from "../sandbox/types.js";
import { within } from "./assert.js";
import { scriptArgv } from "./script.js";
import type { ConformanceHarness, SandboxPool } from "./types.js";

/** Empties the work directory and prints `$1` if nothing is left: then the patterns match no file and stay as they are. */
const TIDY = `word=$1
rm -rf ./* ./.[!.]* ./..?* 2>/dev/null || { chmod -R u+rwx . && rm -rf ./* ./.[!.]* ./..?*; }
set -- * .[!.]* ..?*
[ "$*" = "* .[!.]* ..?*" ] && printf %s "$word"`;
const BOUND = 60_000;

/** Reuses default sandboxes for cases that leave only files, because opening one takes most of the time of such a case. */
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
    // Ignore a failing teardown: other cases are about that.
    async close() {
      await Promise.allSettled(idle.splice(0).map((sandbox) => within(BOUND, "teardown", sandbox.teardown())));
    },
  };
}

async function isTidy(sandbox: Sandbox): Promise<boolean> {
  const word = randomUUID();
  try {
    // Don't empty a repository: its files were there before the case.
    if (sandbox.capabilities.git) return false;
    const { exitCode, stdout } = await within(BOUND, "tidying up", sandbox.exec({ argv: scriptArgv(TIDY, word) }));
    return exitCode === 0 && stdout === word && (await within(BOUND, "processes", sandbox.processes())).length === 0;
  } catch {
    return false;
  }
}

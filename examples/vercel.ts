import { strict as assert } from "node:assert";
import { openSandbox, type Sandbox, SandboxError } from "glovebox";

/** A machine of Vercel's for one task: closed to the network, saved before a risk, copied for two attempts. */
async function work(): Promise<void> {
  // #region open
  await using sandbox = await openSandbox({
    backend: "vercel",
    network: "none",
    limits: { cpus: 2 },
    vercel: { timeout: 120_000, ports: [3000] },
  });
  // #endregion open

  // #region use
  await sandbox.writeFile("numbers.txt", "40\n2\n");
  const sum = await sandbox.exec({ argv: ["awk", "{ n += $1 } END { print n }", "numbers.txt"], timeout: 30_000 });
  assert.equal(sum.stdout, "42\n");

  const late = await sandbox.exec({ argv: ["sh", "-c", "echo so far; sleep 60"], timeout: 2_000 });
  assert.deepEqual([late.timedOut, late.stdout], [true, "so far\n"]);
  // #endregion use

  assert(sandbox.url);
  assert.match(await sandbox.url(3000), /^https?:\/\//);
  await attempts(sandbox);
}

async function attempts(sandbox: Sandbox): Promise<void> {
  // #region fork
  const forks = await sandbox.fork({ count: 2 });
  await Promise.all(forks.map((fork, n) => fork.writeFile("attempt", `${n}`)));
  const tried = await Promise.all(forks.map((fork) => fork.readFile("attempt")));
  assert.deepEqual(tried, ["0", "1"]);
  assert.equal(await sandbox.readFile("attempt"), null);
  await Promise.all(forks.map((fork) => fork.teardown()));
  // #endregion fork
}

try {
  await work();
  console.log("computed, cut short, forked");
} catch (error) {
  if (!(error instanceof SandboxError) || error.code !== "unauthenticated") throw error;
  console.log(error.hint);
  console.log(`not run: ${error.message}`);
}

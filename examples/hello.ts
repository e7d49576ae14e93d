import { strict as assert } from "node:assert";
// #region hello
import { openSandbox } from "glovebox";

const sandbox = await openSandbox({ backend: "local" });
try {
  const allowed = await sandbox.shell("echo hello from $(pwd)");
  console.log(allowed.exitCode, allowed.stdout.trim());
  const refused = await sandbox.exec({ argv: ["cat", "/etc/shadow"], timeout: 5_000 });
  console.log(refused.exitCode, refused.stderr.trim());
  // #endregion hello
  assert.equal(allowed.stdout, `hello from ${sandbox.workDir}\n`);
  assert.equal(refused.exitCode, 1);
  // #region hello
} finally {
  await sandbox.teardown();
}
// #endregion hello

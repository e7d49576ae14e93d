import { strict as assert } from "node:assert";
// #region hello
import { openSandbox } from "glovebox";

await using sandbox = await openSandbox({ backend: "local" });
await sandbox.writeFile("hello.sh", "echo hello from $(pwd)");

const allowed = await sandbox.exec({ argv: ["sh", "hello.sh"] });
console.log(allowed.exitCode, allowed.stdout.trim());

const refused = await sandbox.exec({ argv: ["cat", "/etc/shadow"], timeout: 5_000 });
console.log(refused.exitCode, refused.stderr.trim());
// #endregion hello
assert.equal(allowed.stdout, `hello from ${sandbox.workDir}\n`);
assert.equal(refused.exitCode, 1);

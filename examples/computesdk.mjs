import { strict as assert } from "node:assert";
import { createCompute } from "@computesdk/provider";
import { glovebox } from "glovebox/computesdk";

// #region provider
const compute = createCompute({ defaultProvider: glovebox({ backend: "local" }) });
const sandbox = await compute.sandbox.create();

await sandbox.filesystem.writeFile("numbers.txt", "1\n2\n3\n");
const chunks = [];
const result = await sandbox.runCommand("sort -r numbers.txt; cat /etc/shadow", {
  timeout: 10_000,
  onStdout: (text) => chunks.push(text),
});
await sandbox.destroy();
// #endregion provider

assert.equal(chunks.join(""), "3\n2\n1\n");
assert.equal(result.exitCode, 1);
assert.match(result.stderr, /No such file/);
assert.equal(await compute.sandbox.getById(sandbox.sandboxId), null);
console.log("created, streamed, destroyed");

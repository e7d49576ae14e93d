import { strict as assert } from "node:assert";
import { listSnapshots, openSandbox } from "glovebox";

if (!process.env["DAGGER_SESSION_PORT"]) {
  console.log("not run: there is no Dagger session; try `dagger run node dist/examples/dagger.js`");
  process.exit(0);
}

// #region open
await using sandbox = await openSandbox({
  backend: "dagger",
  image: "debian:stable-slim",
  dagger: {
    setup: [["sh", "-c", "echo prepared > /etc/motd"]],
  },
});
// #endregion open

// #region state
const failed = await sandbox.shell("echo kept > file; exit 128");
assert.equal(failed.exitCode, 128);
assert.equal(await sandbox.readFile("file"), "kept\n");
// #endregion state
assert.equal((await sandbox.exec({ argv: ["cat", "/etc/motd"] })).stdout, "prepared\n");

// #region fork
const id = await sandbox.snapshot();
const [left, right] = await sandbox.fork({ count: 2 });
await left?.writeFile("file", "left");
assert.equal(await right?.readFile("file"), "kept\n");
await sandbox.writeFile("file", "spoilt");
await sandbox.restore(id);
assert.equal(await sandbox.readFile("file"), "kept\n");
// #endregion fork
assert((await listSnapshots()).some((snapshot) => snapshot.id === id));
await Promise.all([left?.teardown(), right?.teardown()]);

// #region refused
await assert.rejects(openSandbox({ backend: "dagger", network: "none" }), { code: "unsupported" });
// #endregion refused
console.log("failed, kept, forked, restored");

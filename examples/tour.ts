import { strict as assert } from "node:assert";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ExecResult, listSandboxes, openSandbox, reap, removeSandbox, SandboxError } from "glovebox";

await using sandbox = await openSandbox({ backend: "local", env: { GREETING: "hello" } });

// #region exec
const result = await sandbox.exec({
  argv: ["sh", "-c", 'echo "$GREETING $1"; cat', "sh", "$(world)"],
  cwd: ".",
  stdin: "from stdin\n",
  timeout: 10_000,
});
assert.equal(result.stdout, "hello $(world)\nfrom stdin\n");
assert.equal(result.exitCode, 0);
// #endregion exec

// #region deadline
const late = await sandbox.exec({ argv: ["sh", "-c", "echo so far; sleep 60"], timeout: 1_000 });
assert.equal(late.timedOut, true);
assert.equal(late.exitCode, 137);
assert.equal(late.stdout, "so far\n");
// #endregion deadline

// #region output
const flood = await sandbox.exec({ argv: ["seq", "1000000"], maxOutput: 1_000 });
assert.equal(flood.truncated.stdout, true);
assert.equal(flood.bytes.stdout, 6_888_896);
assert(flood.stdout.startsWith("1\n2\n") && flood.stdout.endsWith("999999\n1000000\n"));
// #endregion output

// #region abort
const controller = new AbortController();
const stopped = sandbox.exec({
  argv: ["sh", "-c", "echo part; sleep 60"],
  signal: controller.signal,
  onStdout: () => controller.abort(),
});
await assert.rejects(stopped, (error: unknown) => {
  assert(error instanceof SandboxError && error.code === "aborted");
  return (error.partial as ExecResult).stdout === "part\n";
});
// #endregion abort

// #region spawn
const child = await sandbox.spawn({ argv: ["cat"], stdin: "pipe" });
const writer = child.stdin?.getWriter();
await writer?.write(new TextEncoder().encode("over the pipe"));
await writer?.close();
const { value } = await child.stdout.getReader().read();
assert.equal(new TextDecoder().decode(value), "over the pipe");
assert.equal((await child.wait()).exitCode, 0);
// #endregion spawn

// #region files
await sandbox.writeFile("bin/tool", "#!/bin/sh\necho tool\n", { mode: 0o755 });
assert.equal((await sandbox.exec({ argv: ["bin/tool"] })).stdout, "tool\n");
assert.equal(await sandbox.readFile("no-such-file"), null);
assert.deepEqual(await sandbox.listDirectory(), ["bin"]);
// #endregion files

const place = await mkdtemp(join(tmpdir(), "glovebox-tour-"));
// #region trees
const copy = await sandbox.exportDirectory("bin", join(place, "out"));
assert.deepEqual(await readdir(copy), ["tool"]);
await sandbox.refreshFromHost(copy, "again");
assert.equal((await sandbox.stat("again/tool"))?.mode, 0o755);
// #endregion trees
await rm(place, { recursive: true });

// #region errors
try {
  await sandbox.readFile("../outside");
  assert.fail("it was read");
} catch (error) {
  if (!(error instanceof SandboxError)) throw error;
  switch (error.code) {
    case "path_confinement":
      console.log(`${error.operation} on ${error.backend}: ${error.message}`);
      break;
    default:
      throw error;
  }
}
// #endregion errors

// #region refuse
await assert.rejects(openSandbox({ backend: "local", limits: { disk: 1_000_000 } }), { code: "unsupported" });
// #endregion refuse

// #region keep
const first = await openSandbox({ backend: "local", keep: true });
await first.writeFile("notes", "kept");
await first.teardown();

const second = await openSandbox({ backend: "local", id: first.id });
assert.equal(await second.readFile("notes"), "kept");
await second.teardown();
await removeSandbox(first.id);
// #endregion keep

// #region left-over
const { removed, failed } = await reap();
console.log(`reaped ${removed.length}, could not remove ${failed.length}`);
for (const { id, backend, state } of await listSandboxes()) console.log(id, backend, state);
// #endregion left-over
assert(!(await listSandboxes()).some(({ id }) => id === first.id));
console.log("the tour is over");

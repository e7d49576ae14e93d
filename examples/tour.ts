import { strict as assert } from "node:assert";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type ExecResult,
  listSandboxes,
  openSandbox,
  reap,
  removeSandbox,
  SandboxError,
  type SandboxEvent,
} from "glovebox";

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

// #region program
assert.equal((await sandbox.exec("echo", ["$HOME", "; ls"])).stdout, "$HOME ; ls\n");
// #endregion program

// #region check
try {
  await sandbox.exec("sh", ["-c", "echo half done; echo no such module >&2; exit 3"], { check: true });
  assert.fail("it succeeded");
} catch (error) {
  if (!(error instanceof SandboxError) || error.code !== "command_failed") throw error;
  console.log(error.message); // the command, "failed with exit code 3", and the last lines of stderr
  assert.equal(error.result?.exitCode, 3);
  assert.equal(error.result.stdout, "half done\n");
}
// #endregion check

// #region combined
const log = await sandbox.shell("echo compiling; echo warning >&2; echo done", { output: "combined" });
assert.equal(log.stdout, "compiling\nwarning\ndone\n");
assert.equal(log.stderr, "");
// #endregion combined

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

// #region processes
const { id } = await sandbox.spawn({
  argv: ["sh", "-c", "echo ready; read line; echo $line"],
  stdin: "pipe",
  background: true,
});

// Later, or elsewhere in this process:
const process = await sandbox.process(id);
const text = new TextDecoder();
const start = await process.read({ wait: 10_000 }); // returns as soon as something is there
assert.equal(text.decode(start.data), "ready\n");

const attached = await process.attach();
await attached.stdin?.getWriter().write(new TextEncoder().encode("hello\n"));
assert.equal((await process.wait()).exitCode, 0);
const rest = await process.read({ cursor: start.cursor, wait: 10_000 });
assert.deepEqual([text.decode(rest.data), rest.missed, rest.ended], ["hello\n", 0, true]);
assert.equal(process.state, "ended");
// #endregion processes

// #region files
await sandbox.writeFile("bin/tool", "#!/bin/sh\necho tool\n", { mode: 0o755 });
assert.equal((await sandbox.exec({ argv: ["bin/tool"] })).stdout, "tool\n");
assert.equal(await sandbox.readFile("no-such-file"), null);
assert.deepEqual(await sandbox.listDirectory(), ["bin"]);
// #endregion files

// #region manage
await sandbox.appendFile("log", "one\n");
await sandbox.appendFile("log", "two\n");
await sandbox.copy("bin", "copied", { recursive: true });
await sandbox.rename("copied/tool", "copied/renamed");
await sandbox.exec("ln", ["-s", "renamed", "copied/latest"]);
assert.equal((await sandbox.stat("copied/latest"))?.type, "symlink");
assert.equal((await sandbox.stat("copied/latest", { follow: true }))?.type, "file");
const [, entry] = await sandbox.listDirectory("copied", { details: true });
assert(entry?.name === "renamed" && entry.type === "file" && entry.mode === 0o755 && entry.size === 20);
await assert.rejects(sandbox.remove("copied"), { code: "conflict" });
assert.equal(await sandbox.remove("copied", { recursive: true }), true);
assert.equal(await sandbox.exists("copied"), false);
// #endregion manage

// #region file-streams
async function* lines(): AsyncGenerator<Uint8Array> {
  for (let n = 0; n < 100_000; n++) yield new TextEncoder().encode(`line ${n}\n`);
}
await sandbox.writeFile("large", lines(), { signal: AbortSignal.timeout(60_000) });
const part = await sandbox.readStream("large", { start: 7, end: 13 });
assert.equal(await new Response(part).text(), "line 1");
// #endregion file-streams

const place = await mkdtemp(join(tmpdir(), "glovebox-tour-"));
// #region trees
const copy = await sandbox.downloadDirectory("bin", join(place, "out"));
assert.deepEqual(await readdir(copy), ["tool"]);
await sandbox.uploadDirectory(copy, "again");
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

// #region limits
const { limits, reasons = {} } = sandbox.capabilities;
const hasDisk = limits.includes("disk");
if (!hasDisk) console.log(`no limits.disk here: ${reasons["limits.disk"]}`);
const bounded = await openSandbox({
  backend: "local",
  limits: { pids: 64, ...(hasDisk && { disk: 20 * 1024 ** 2 }) },
});
const bomb = await bounded.shell("i=0; while [ $i -lt 200 ]; do sleep 60 & i=$((i+1)); done; echo $i");
assert.notEqual(bomb.stdout, "200\n");
const { exitCode } = await bounded.shell("head -c 40000000 /dev/zero > large");
assert.equal(exitCode === 0, !hasDisk);
await bounded.teardown();
// #endregion limits

// #region refuse
await assert.rejects(openSandbox({ backend: "local", isolation: "none", network: "none" }), { code: "unsupported" });
// #endregion refuse

// #region place
await using placed = await openSandbox({ backend: "local", workDir: "/workspace/app" });
assert.equal((await placed.exec({ argv: ["pwd"] })).stdout, "/workspace/app\n");
await using twin = await placed.fork();
assert.equal(twin.workDir, placed.workDir);
assert.notEqual(twin.hostDir, placed.hostDir);
// #endregion place

// #region paths
await using open = await openSandbox({ backend: "local", paths: "sandbox" });
await open.writeFile("/tmp/cache/notes", "anywhere");
assert.equal((await open.exec({ argv: ["cat", "notes"], cwd: "/tmp/cache" })).stdout, "anywhere");
await assert.rejects(open.writeFile("/etc/passwd", ""), { code: "permission_denied" });
await assert.rejects(open.listDirectory("/proc/self/root"), { code: "invalid_path" });
// #endregion paths

// #region keep
const first = await openSandbox({ backend: "local", keep: true });
await first.writeFile("notes", "kept");
await first.teardown();

const second = await openSandbox({ backend: "local", id: first.id });
assert.equal(await second.readFile("notes"), "kept");
await second.teardown();
await removeSandbox(first.id);
// #endregion keep

// #region env-names
const withToken = await openSandbox({ backend: "local", keep: true, env: { API_TOKEN: "not-written-down" } });
await withToken.teardown();

const warnings: string[] = [];
const onEvent = ({ type, message }: SandboxEvent): void => {
  if (type === "warning") warnings.push(message);
};
const without = await openSandbox({ id: withToken.id, keep: false, onEvent });
assert.match(warnings.join(), /API_TOKEN/); // give env again, to set it
// #endregion env-names
await without.teardown();

// #region names
const options = {
  backend: "local",
  name: "build-box",
  labels: { team: "blue" },
  keep: "all",
  ifExists: "reopen",
} as const;
const made = await openSandbox(options); // made now
await made.shell('echo warm > "$HOME/cache"');
await made.teardown();

const again = await openSandbox(options); // the same one, in this process or in a later one
assert.equal(again.id, made.id);
assert.equal((await again.shell('cat "$HOME/cache"')).stdout, "warm\n");
assert.deepEqual(
  (await listSandboxes({ labels: { team: "blue" } })).map(({ name }) => name),
  ["build-box"],
);
// #endregion names

// #region second-handle
{
  await using handle = await openSandbox({ id: "build-box" });
  await handle.writeFile("notes", "from the second handle");
}
assert.equal(await again.readFile("notes"), "from the second handle"); // still open
// #endregion second-handle
await again.teardown();
await removeSandbox("build-box");

// #region left-over
const { removed, failed } = await reap();
console.log(`reaped ${removed.length}, could not remove ${failed.length}`);
for (const { id, backend, state } of await listSandboxes()) console.log(id, backend, state);
// #endregion left-over
assert(!(await listSandboxes()).some(({ id }) => id === first.id));
console.log("the tour is over");

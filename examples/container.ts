import { strict as assert } from "node:assert";
import { deleteSnapshot, openSandbox, SandboxError } from "glovebox";

// Any image with a shell.
const image = process.env["GLOVEBOX_EXAMPLE_IMAGE"] ?? "busybox:1.36";

// #region open
await using sandbox = await openSandbox({
  backend: "docker",
  image,
  limits: { memory: 256 * 1024 ** 2, pids: 200, cpus: 1 },
});
await sandbox.writeFile("greet.sh", 'echo "$GREETING from $(id -u) in $(pwd)"');
const greeting = await sandbox.exec({ argv: ["sh", "greet.sh"], env: { GREETING: "hello" }, user: "1000" });
console.log(greeting.stdout.trim());
// #endregion open
assert.equal(greeting.stdout, "hello from 1000 in /workspace\n");

// #region confined
const confined = await sandbox.shell("grep CapEff /proc/self/status; ls /sys/class/net");
console.log(confined.stdout.trim());
// #endregion confined
assert.equal(confined.stdout, "CapEff:\t0000000000000000\nlo\n");

// #region save
const before = await sandbox.snapshot();
await sandbox.shell("rm greet.sh; echo spoilt > notes");
await sandbox.restore(before);
console.log((await sandbox.listDirectory()).join(" "));

const [left, right] = await sandbox.fork({ count: 2 });
await left?.writeFile("side", "left");
await right?.writeFile("side", "right");
console.log(await left?.readFile("side"), await right?.readFile("side"), await sandbox.readFile("side"));
// #endregion save
assert.deepEqual(await sandbox.listDirectory(), ["greet.sh"]);
assert.equal(await left?.readFile("side"), "left");
await Promise.all([left?.teardown(), right?.teardown()]);
await deleteSnapshot(before);

// #region refused
try {
  await openSandbox({ backend: "docker", image, mounts: [{ source: "/etc" }] });
  assert.fail("it was mounted");
} catch (error) {
  if (!(error instanceof SandboxError)) throw error;
  console.log(`${error.code}: ${error.message}`);
}
// #endregion refused
console.log("confined, saved, forked, refused");

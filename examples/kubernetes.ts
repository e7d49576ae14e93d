import { strict as assert } from "node:assert";
import { openSandbox, SandboxError } from "glovebox";

// Any image that the nodes of the cluster can pull, with a shell.
const image = process.env["GLOVEBOX_EXAMPLE_IMAGE"] ?? "busybox:1.36";

// #region open
await using sandbox = await openSandbox({
  backend: "kubernetes",
  image,
  limits: { memory: 256 * 1024 ** 2, cpus: 0.25 },
});
await sandbox.writeFile("greet.sh", 'echo "$GREETING from $(id -u) in $(pwd)"');
const greeting = await sandbox.exec({ argv: ["sh", "greet.sh"], env: { GREETING: "hello" } });
console.log(greeting.stdout.trim());
// #endregion open
assert.equal(greeting.stdout, "hello from 1000 in /workspace\n");

const confined = await sandbox.shell("grep CapEff /proc/self/status; ls /var/run/secrets/kubernetes.io 2>/dev/null");
assert.equal(confined.stdout, "CapEff:\t0000000000000000\n");

// #region refused
try {
  const podTemplate = { spec: { hostNetwork: true } };
  await openSandbox({ backend: "kubernetes", image, kubernetes: { podTemplate } });
  assert.fail("it was opened");
} catch (error) {
  if (!(error instanceof SandboxError)) throw error;
  console.log(`${error.code}: ${error.message}`);
}
// #endregion refused

const fork = await sandbox.fork();
await fork.writeFile("side", "fork");
assert.equal(await sandbox.readFile("side"), null);
await fork.teardown();
console.log("opened, confined, refused, forked");

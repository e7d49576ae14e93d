import { strict as assert } from "node:assert";
import { type ExecResult, openSandbox, type Sandbox, SandboxError, type SandboxOptions } from "glovebox";

/** What somebody sent in. It tries what it should not. */
const HOSTILE = `
cat /etc/shadow && echo "GOT passwords"
ls "$HOST_HOME/.ssh" && echo "GOT keys"
env | grep -i -E 'token|secret|api_key' && echo "GOT secrets"
echo x > /usr/bin/ls-2 && echo "GOT the system"
node -e 'require("net").connect(443, "1.1.1.1", () => console.log("GOT out")).on("error", () => process.exit(1))'
ln -s /etc/passwd result.txt
setsid sh -c 'while :; do echo mine >> mined; sleep 0.1; done' &
yes "so much output" &
trap "" TERM
while :; do sleep 1; done
`;

// #region limits
/** Opens a sandbox with limits, or without where this machine has no control group and refuses them. */
async function openLimited(): Promise<Sandbox> {
  const options: SandboxOptions = { network: "none", operationTimeout: 30_000 };
  try {
    return await openSandbox({ ...options, limits: { memory: 512 * 1024 * 1024, pids: 64 } });
  } catch (error) {
    if (!(error instanceof SandboxError) || error.code !== "unsupported") throw error;
    console.log(`without limits: ${error.message}`);
    return await openSandbox(options);
  }
}
// #endregion limits

process.env["EXAMPLE_API_KEY"] = "a secret of the host";
await using sandbox = await openLimited();

// #region run
await sandbox.writeFile("sent-in.sh", HOSTILE);
const result: ExecResult = await sandbox.exec({
  argv: ["sh", "sent-in.sh"],
  env: { HOST_HOME: process.env["HOME"] ?? "/root" },
  timeout: 5_000,
  maxOutput: 16 * 1024,
});
// #endregion run

console.log(`ended after ${result.durationMs.toFixed(0)} ms, ${result.bytes.stdout} bytes of output`);
assert(result.timedOut && result.exitCode === 137, "it was ended at its deadline");
assert(!result.stdout.includes("GOT"), `it got something: ${result.stdout.match(/GOT.*/)?.[0]}`);
assert(result.truncated.stdout && result.stdout.length < 20_000, "the flood was cut");

// What it left is as hostile as it was itself.
const code = await sandbox.readFile("result.txt").then(
  (text) => `read ${text?.length} characters`,
  (error: unknown) => (error instanceof SandboxError ? error.code : String(error)),
);
assert.equal(code, "path_confinement", "its link to /etc/passwd was not followed");

const before = (await sandbox.stat("mined"))?.size;
await new Promise((resolve) => setTimeout(resolve, 500));
assert(before !== undefined && before > 0, "the background process had run");
assert.equal((await sandbox.stat("mined"))?.size, before, "its background process is dead");
console.log("it got nothing, and nothing of it is left");

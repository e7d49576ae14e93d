// Works with sandboxes while this process may start no other one, and after that. Prints what each step gave as JSON.
import { execFileSync, spawn } from "node:child_process";

const [, , directory, job] = process.argv;
const { options } = JSON.parse(job);
const { createLocalSandbox } = await import(`${directory}/src/sandbox/local.js`);
const { listSandboxes } = await import(`${directory}/src/sandbox/reap.js`);

const codeOf = async (work) => {
  try {
    await work();
    return "ok";
  } catch (error) {
    return error.name === "SandboxError" ? error.code : String(error.stack);
  }
};
const first = await createLocalSandbox(options);
await first.writeFile("x", "x");
const steps = async () => ({
  open: await codeOf(async () => (await createLocalSandbox(options)).teardown()),
  exec: await codeOf(() => first.exec({ argv: ["true"] })),
  changes: await codeOf(() => first.changes()),
  snapshot: await codeOf(() => first.snapshot()),
  fork: await codeOf(async () => (await first.fork()).teardown()),
});
// Started now, because later it could not be.
const pid = String(process.pid);
const all = execFileSync("prlimit", ["--nproc", "--noheadings", "--output", "HARD"]).toString().trim();
const give = spawn("sh", ["-c", `read line; prlimit --pid ${pid} --nproc=${all}: && echo done; read line`]);
execFileSync("prlimit", ["--pid", pid, "--nproc=1:"]);
const without = await steps();
give.stdin.write("now\n");
await new Promise((resolve) => give.stdout.once("data", resolve));
give.stdin.end();
const later = await steps();
await first.teardown();
console.log(JSON.stringify({ without, later, left: (await listSandboxes()).map(({ id }) => id) }));

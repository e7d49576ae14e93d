// Uses a sandbox at the Daytona of the environment as any program would, and says what came of each call.
const [, , directory] = process.argv;
const { createDaytonaSandbox } = await import(`${directory}/src/sandbox/daytona.js`);

const sandbox = await createDaytonaSandbox();
const said = await sandbox.exec({ argv: ["sh", "-c", "cat; echo err >&2; exit 3"], stdin: "through" });
await sandbox.writeFiles({ "a/b": "small", large: Buffer.alloc(1 << 20, 7) });
const large = await sandbox.readBytes("large");
const kept = [await sandbox.readFile("a/b"), large.length, large.every((byte) => byte === 7)];
console.log(JSON.stringify({ id: sandbox.id, exec: [said.exitCode, said.stdout, said.stderr], kept }));
// Whoever started this has made the service refuse what comes next.
await new Promise((resolve) => process.stdin.once("data", resolve));
const refused = await sandbox.writeFile("late", "x").then(
  () => "written",
  ({ code }) => code,
);
console.log(JSON.stringify({ refused, late: await sandbox.readFile("late") }));
await sandbox.teardown();
process.stdin.destroy();

// Opens several sandboxes one after the other, each with a command that says which one it is, and holds them until it is told to close them.
import { once } from "node:events";

const [, , directory, text] = process.argv;
const { count, marker } = JSON.parse(text);
const { createLocalSandbox } = await import(`${directory}/src/sandbox/local.js`);

const sandboxes = [];
for (let n = 0; n < count; n++) {
  const sandbox = await createLocalSandbox();
  sandboxes.push(sandbox);
  await sandbox.spawn({ argv: ["sh", "-c", "sleep 600; :", `${marker}-${n}`] });
}
console.log(JSON.stringify(sandboxes.map(({ id }) => id)));
await once(process.stdin, "data");
await Promise.all(sandboxes.map((sandbox) => sandbox.teardown()));
process.exit(0);

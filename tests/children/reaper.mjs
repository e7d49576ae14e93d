// Reaps whatever place it is told of, a line each, as a process that stays would. Prints each report.
import { createInterface } from "node:readline";

const [, , directory] = process.argv;
const { reap } = await import(`${directory}/src/sandbox/reap.js`);

for await (const line of createInterface({ input: process.stdin })) {
  const { env, options } = JSON.parse(line);
  Object.assign(process.env, env);
  const { removed, kept, failed } = await reap(options);
  console.log(JSON.stringify({ removed, kept, failed: failed.map(({ id, error }) => `${id}: ${error.message}`) }));
}

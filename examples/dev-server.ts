import { strict as assert } from "node:assert";
import { openSandbox } from "glovebox";

const SERVER = `
const { readFileSync } = require("node:fs");
require("node:http")
  .createServer((_, answer) => answer.end(readFileSync("page.html")))
  .listen(Number(process.env.PORT), "127.0.0.1", () => console.log("listening"));
`;

await using sandbox = await openSandbox();
await sandbox.writeFiles({ "server.cjs": SERVER, "page.html": "<h1>first</h1>" });

// #region serve
const port = 8080;
const server = await sandbox.spawn({ argv: ["node", "server.cjs"], env: { PORT: `${port}` } });
await sandbox.waitForPort(port);

// The sandbox has no network, and the server listens on its loopback only.
const url = await sandbox.url(port);
const ask = async (): Promise<string> => (await fetch(url)).text();
assert.equal(await ask(), "<h1>first</h1>");

await sandbox.writeFile("page.html", "<h1>second</h1>");
assert.equal(await ask(), "<h1>second</h1>");

await server.kill();
const { signal } = await server.wait();
// #endregion serve

assert.equal(signal, "SIGTERM");
await assert.rejects(ask(), "nobody listens any more");
assert(
  (await sandbox.processes()).every(({ state }) => state === "ended"),
  "nothing runs on",
);

// #region ready
const late = sandbox.spawn({ argv: ["sh", "-c", "echo no such module >&2; exit 1"] });
const failed = late.then(async (child) => {
  const { exitCode } = await child.wait();
  throw new Error(`the server ended with ${exitCode}`);
});
await assert.rejects(Promise.race([sandbox.waitForPort(port, { timeout: 20_000 }), failed]), /ended with 1/);
// #endregion ready

// #region publish
const first = await openSandbox({ publish: [port], keep: true });
await first.writeFiles({ "server.cjs": SERVER, "page.html": "<h1>kept</h1>" });
await first.teardown();

const again = await openSandbox({ id: first.id, keep: false });
assert.deepEqual(again.published, [port]); // reachable again, at another port of this machine
await again.spawn({ argv: ["node", "server.cjs"], env: { PORT: `${port}` } });
await again.waitForPort(port);
assert.equal(await (await fetch(await again.url(port))).text(), "<h1>kept</h1>");
// #endregion publish
await again.teardown();

// What still runs at the end is taken away by teardown, which `await using` calls.
await sandbox.spawn({ argv: ["node", "server.cjs"], env: { PORT: `${port}` } });
console.log("served, changed, stopped");

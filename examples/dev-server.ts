import { strict as assert } from "node:assert";
import { openSandbox, type Sandbox, type SandboxProcess } from "glovebox";

const SERVER = `
const { readFileSync } = require("node:fs");
require("node:http")
  .createServer((_, answer) => answer.end(readFileSync("page.html")))
  .listen(Number(process.env.PORT), "127.0.0.1", () => console.log("listening"));
`;

// #region ask
/** Asks the server from inside: every process of a sandbox shares its loopback. */
async function ask(sandbox: Sandbox, port: number): Promise<string | undefined> {
  const program = `fetch("http://127.0.0.1:${port}").then((r) => r.text()).then((t) => process.stdout.write(t))`;
  const { exitCode, stdout } = await sandbox.exec({ argv: ["node", "-e", program], timeout: 10_000 });
  return exitCode === 0 ? stdout : undefined;
}
// #endregion ask

// #region ready
/** Waits until the server answers, as long as it lives and for at most 20 s. */
async function untilReady(sandbox: Sandbox, server: SandboxProcess, port: number): Promise<void> {
  let ended: string | undefined;
  void server.wait().then(({ exitCode }) => {
    ended = `the server ended with ${exitCode}`;
  });
  for (const end = Date.now() + 20_000; Date.now() < end; ) {
    if ((await ask(sandbox, port)) !== undefined) return;
    if (ended !== undefined) throw new Error(ended);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error("the server was not ready in 20 s");
}
// #endregion ready

await using sandbox = await openSandbox();
await sandbox.writeFiles({ "server.cjs": SERVER, "page.html": "<h1>first</h1>" });

// #region serve
const port = 8080;
const server = await sandbox.spawn({ argv: ["node", "server.cjs"], env: { PORT: `${port}` } });
await untilReady(sandbox, server, port);
assert.equal(await ask(sandbox, port), "<h1>first</h1>");

await sandbox.writeFile("page.html", "<h1>second</h1>");
assert.equal(await ask(sandbox, port), "<h1>second</h1>");

await server.kill();
const { signal } = await server.wait();
// #endregion serve

assert.equal(signal, "SIGTERM");
assert.equal(await ask(sandbox, port), undefined, "nobody listens any more");
assert.deepEqual(await sandbox.processes(), [], "nothing runs on");

// What still runs at the end is taken away by teardown, which `await using` calls.
await sandbox.spawn({ argv: ["node", "server.cjs"], env: { PORT: `${port}` } });
console.log("served, changed, stopped");

import { strict as assert } from "node:assert";
import { once } from "node:events";
import { createServer, get, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { openSandbox, type Sandbox, SandboxError } from "glovebox";

/** What became of each request, for the checks below. */
const outcomes: string[] = [];
let taken = 0;

// #region stream
/** Streams a command to a client as it comes: a slow client slows the command down, one that leaves ends it. */
async function stream(sandbox: Sandbox, argv: string[], response: ServerResponse): Promise<string> {
  const gone = new AbortController();
  response.on("close", () => gone.abort());
  response.setHeader("content-type", "text/plain; charset=utf-8");
  const send = async (chunk: Uint8Array): Promise<void> => {
    taken += chunk.length;
    if (!response.write(chunk)) await once(response, "drain", { signal: gone.signal });
  };
  try {
    const { exitCode } = await sandbox.exec({
      argv,
      signal: gone.signal,
      maxOutput: 0,
      onStdout: send,
      onStderr: send,
    });
    response.end();
    return `exit ${exitCode}`;
  } catch (error) {
    response.destroy();
    return error instanceof SandboxError ? error.code : String(error);
  }
}
// #endregion stream

await using sandbox = await openSandbox();
const commands: Readonly<Record<string, string[]>> = {
  "/count": ["sh", "-c", "i=0; while [ $i -lt 50000 ]; do echo line $i; i=$((i+1)); done; echo done >&2"],
  "/endless": ["yes", "a line that comes again and again"],
};
const server = createServer((request, response) => {
  const argv = commands[request.url ?? ""] ?? ["false"];
  void stream(sandbox, argv, response).then((outcome) => outcomes.push(outcome));
}).listen(0, "127.0.0.1");
await once(server, "listening");
const { port } = server.address() as AddressInfo;

const text = await (await fetch(`http://127.0.0.1:${port}/count`)).text();
assert(text.startsWith("line 0\nline 1\n") && text.includes("line 49999\n") && text.includes("done\n"));
assert.deepEqual(outcomes, ["exit 0"]);

// A client that reads one piece and then nothing: the command must stop, not this process swell.
taken = 0;
const [answer] = (await once(get(`http://127.0.0.1:${port}/endless`), "response")) as [IncomingMessage];
await once(answer, "readable");
await settled(() => taken);
assert(taken > 0 && taken < 64 * 1024 * 1024, `${taken} bytes were taken for a client that reads none`);
console.log(`a client that does not read: ${taken} bytes in flight`);

// And then it leaves.
answer.destroy();
await settled(() => outcomes.length);
assert.deepEqual(outcomes, ["exit 0", "aborted"]);
assert((await sandbox.processes()).every(({ state }) => state === "ended"));
server.closeAllConnections();
server.close();
console.log("streamed, held back, aborted");

/** Waits until a value has stayed the same for half a second. */
async function settled(value: () => number): Promise<void> {
  for (let i = 0, last = Number.NaN; i < 40 && last !== value(); i++) {
    last = value();
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}

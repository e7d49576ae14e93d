import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { openSandbox } from "../../dist/src/index.js";
import { goal, interleave, row, timed } from "../parts/measure.mjs";

const PROGRAM = fileURLToPath(new URL("../../dist/src/cli.js", import.meta.url));
const VERSION = "2026-07-28";
const META = {
  "io.modelcontextprotocol/protocolVersion": VERSION,
  "io.modelcontextprotocol/clientInfo": { name: "bench", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": {},
};

/** A server that was started, and a client that sends lines. `modern`: in which era. */
function startServer(modern) {
  const child = spawn(process.execPath, [PROGRAM, "mcp"], { stdio: ["pipe", "pipe", "inherit"] });
  const waiting = new Map();
  let rest = "";
  let lastId = 0;
  child.stdout.setEncoding("utf8").on("data", (text) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      const message = JSON.parse(line);
      waiting.get(message.id)?.(message);
    }
  });
  const ask = (method, params) =>
    new Promise((resolve, reject) => {
      const id = ++lastId;
      waiting.set(id, (message) =>
        message.error ? reject(new Error(message.error.message)) : resolve(message.result),
      );
      child.stdin.write(
        `${JSON.stringify({ jsonrpc: "2.0", id, method, params: modern ? { ...params, _meta: META } : params })}\n`,
      );
    });
  const greet = async () => {
    if (modern) return await ask("server/discover", {});
    const clientInfo = { name: "bench", version: "1" };
    return await ask("initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo });
  };
  const exec = async () => {
    const { content } = await ask("tools/call", { name: "exec", arguments: { argv: ["true"] } });
    if (content[0].text !== "exit code 0") throw new Error(content[0].text);
  };
  const end = async () => {
    child.stdin.end();
    await new Promise((resolve) => child.once("close", resolve));
  };
  return { greet, exec, end };
}

/** `glovebox mcp`: the first answer after it is started, and a call against the sandbox's own exec. */
export async function measure({ isQuick }) {
  const first = (modern, work) => async () => {
    const server = startServer(modern);
    const took = await timed(() => work(server));
    await server.end();
    return took;
  };
  const starts = await interleave(
    {
      "first answer, era 2025": first(false, ({ greet }) => greet()),
      "first answer, era 2026": first(true, ({ greet }) => greet()),
      "first command done, era 2026": first(true, async ({ greet, exec }) => {
        await greet();
        await exec();
      }),
    },
    { rounds: isQuick ? 5 : 20, warmup: 1 },
  );
  const [server, sandbox] = [startServer(true), await openSandbox({ backend: "local" })];
  await server.greet();
  await server.exec();
  const calls = await interleave(
    {
      "exec by mcp": () => timed(server.exec),
      "exec of the sandbox": () => timed(() => sandbox.exec({ argv: ["true"] })),
    },
    { rounds: isQuick ? 50 : 300, warmup: 10 },
  );
  await server.end();
  await sandbox.teardown();
  const rows = Object.entries({ ...starts, ...calls }).map(([variant, taken]) => row(variant, taken));
  const [legacy, modern, , ours, own] = rows;
  return {
    rows,
    goals: [
      goal("first answer after the start, era 2025", { value: legacy.p50, unit: "ms", atMost: 700, ours: legacy }),
      goal("first answer after the start, era 2026", { value: modern.p50, unit: "ms", atMost: 700, ours: modern }),
      goal("a call over the sandbox's own exec", {
        value: ours.p50 - own.p50,
        unit: "ms",
        atMost: 10,
        ours,
        floor: own,
      }),
    ],
  };
}

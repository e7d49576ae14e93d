import { readFileSync } from "node:fs";
import { join } from "node:path";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Bench, createBench, program } from "../support/cli.js";
import { connectBy, ERAS, fieldsOf, type TestClient } from "../support/mcp/client.js";
import { createRepository } from "../support/scratch.js";

let bench: Bench;
beforeAll(() => {
  bench = createBench();
});
afterAll(() => bench.remove());

async function connect(args: readonly string[] = [], era: Parameters<typeof connectBy>[1] = {}): Promise<TestClient> {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [program, "mcp", ...args],
    env: bench.env,
    cwd: bench.path,
    stderr: "ignore",
  });
  return await connectBy(transport, era);
}

const INITIALIZE = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "raw", version: "1" } },
};

describe("glovebox mcp on stdin and stdout", () => {
  it.each(ERAS)("serves the official client, era %s, and leaves nothing when it goes", async (_, era) => {
    {
      await using client = await connect([], era);
      expect((await client.client.listTools()).tools).toHaveLength(7);
      expect(await client.text("exec", { command: "echo hello from $(pwd)" })).toBe(
        "exit code 0\nhello from /workspace",
      );
    }
    expect(await bench.settled()).toEqual([]);
  });

  it("writes nothing but JSON-RPC to stdout, answers what is none, and goes on", async () => {
    const { child, ended, printed } = bench.start(["mcp", "--name", "raw"]);
    const send = (text: string): void => void child.stdin?.write(`${text}\n`);
    send("this is no JSON");
    send("[]");
    send("42");
    send('{"jsonrpc":"2.0"}');
    send('{"jsonrpc":"2.0","id":{},"method":"ping"}');
    send('{"jsonrpc":"2.0","id":null,"method":"ping"}');
    send('{"jsonrpc":"2.0","id":"four","method":4}');
    send('{"jsonrpc":"2.0","id":"neither"}');
    send(`{"jsonrpc":"2.0","id":7,"method":"x","params":"${"y".repeat(11 << 20)}"}`);
    send(JSON.stringify(INITIALIZE));
    send(JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" }));
    send(JSON.stringify({ jsonrpc: "2.0", id: 2, method: "no/such/method" }));
    send(
      JSON.stringify({
        jsonrpc: "2.0",
        id: 3,
        method: "tools/call",
        params: { name: "exec", arguments: { command: "echo made" } },
      }),
    );
    await printed("made");
    child.stdin?.end();
    const { code, stdout } = await ended;
    expect(code).toBe(0);
    const messages = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { id?: number | string; error?: { code: number; message: string } });
    const refused = messages.slice(0, 9);
    expect(refused.map(({ error }) => error?.code)).toEqual([-32700, ...Array<number>(8).fill(-32600)]);
    expect(refused.map(({ id }) => id)).toEqual([...Array<undefined>(6).fill(undefined), "four", "neither", undefined]);
    expect(messages[8]?.error?.message).toContain("more than 10485760 bytes");
    expect(messages.find(({ id }) => id === 2)?.error?.code).toBe(-32601);
    expect(await bench.settled()).toEqual([]);
  });

  it.each(["SIGTERM", "SIGINT"] as const)("ends by %s with all that it started", async (signal) => {
    const { child, ended, printed } = bench.start(["mcp"]);
    const call = { name: "exec", arguments: { command: "echo $((40+2)); sleep 600", yield_ms: 1_000 } };
    child.stdin?.write(
      `${JSON.stringify(INITIALIZE)}\n${JSON.stringify({ jsonrpc: "2.0", id: 2, method: "tools/call", params: call })}\n`,
    );
    await printed("still running");
    child.kill(signal);
    expect((await ended).code).toBe(signal === "SIGTERM" ? 143 : 130);
    expect(await bench.settled()).toEqual([]);
  });

  it("lets no second server have the same name, and says so in the call", async () => {
    await using first = await connect(["--name", "shared"]);
    expect(await first.text("exec", { command: "echo mine" })).toContain("mine");
    await using second = await connect(["--name", "shared"]);
    expect(await second.failure("exec", { command: "echo mine" })).toMatch(/^conflict: .*shared/);
    expect(await first.text("exec", { command: "echo still mine" })).toContain("still mine");
  });

  it("keeps a sandbox by its name for the next server", async () => {
    const flags = ["--name", "dev", "--reopen", "--keep"];
    {
      await using first = await connect(flags);
      await first.text("file_write", { path: "kept.txt", content: "yes" });
    }
    await expect.poll(async () => (await bench.run(["ls", "--json"])).stdout).toContain('"kept"');
    {
      await using second = await connect(flags);
      expect(await second.text("exec", { command: "cat kept.txt" })).toBe("exit code 0\nyes");
    }
    await expect.poll(async () => (await bench.run(["rm", "dev"])).code).toBe(0);
  });

  it.each([
    [["--http", "70000"], "--http takes a port"],
    [["--host", "127.0.0.1"], "--host needs --http"],
    [["--client", "codex"], "--client needs install"],
    [["--tools", "nope"], "--tools takes"],
    [["--offer", "x"], "--offer takes"],
    [["--memory", "much"], "--memory takes a size"],
    [["--tools", "runs"], "--tools runs needs --repo"],
    [["--offer", "blueprint=hello"], "--offer blueprint= needs --tools runs"],
    [["--max-cost", "5"], "--max-cost needs --tools runs"],
    [["--repo", ".", "--tools", "runs", "--max-time", "soon"], "--max-time"],
    [["serve"], 'mcp does not take "serve"'],
    [["--json"], "--json needs --http or install"],
  ])("refuses %j before it serves", async (args, message) => {
    const { code, stderr } = await bench.run(["mcp", ...args]);
    expect(code).toBe(2);
    expect(stderr).toContain(message);
  });

  it("runs a blueprint on the repository, with the limits of the flags", async () => {
    const repo = createRepository(join(bench.path, "project"));
    const flags = [
      "--repo",
      repo,
      "--tools",
      "runs",
      "--offer",
      "blueprint=hello",
      "--max-time",
      "50s",
      "--pids",
      "64",
    ];
    await using client = await connect(flags);
    expect(await client.failure("run_start", { blueprint: "bug-fix", intent: "x" })).toMatch(/^permission_denied: /);
    const started = await client.call("run_start", { blueprint: "hello", intent: "greet" });
    const id = String(fieldsOf(started)["run_id"]);
    const status = async (): Promise<string> => await client.text("run_status", { run_id: id, wait_ms: 20_000 });
    await expect.poll(status).toContain("# success: `hello`");
    const { limits, sandbox } = JSON.parse(readFileSync(join(repo, ".glovebox", "runs", id, "run.json"), "utf8")) as {
      limits: object;
      sandbox: object;
    };
    expect([limits, sandbox]).toMatchObject([{ wall: 50_000 }, { limits: { pids: 64 } }]);
  });

  it("needs a token for --allow-push, and for --http", async () => {
    for (const args of [["--allow-push"], ["--http", "0"]]) {
      const { code, stderr } = await bench.run(["mcp", ...args]);
      expect(code).toBe(1);
      expect(stderr).toMatch(/glovebox: (?:No token found for --allow-push|GLOVEBOX_MCP_TOKEN is not set)/);
    }
  });
});

import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createServer, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { protocolInternals } from "../../src/mcp/protocol.js";
import { createMcpServer, type HttpServer, type McpServer, serveHttp } from "../../src/mcp.js";
import { createBench } from "../support/cli.js";
import { addFixtures } from "../support/mcp/fixtures.js";
import { NODE_24, whyNoRuntime } from "../support/run/runtimes.js";
import { createRepository, createScratch, type Scratch } from "../support/scratch.js";

const run = promisify(execFile);
const here = fileURLToPath(new URL(".", import.meta.url));
const PACKAGES = join(here, "programs", "node_modules", "@modelcontextprotocol");
const TOKEN = "a-token-for-the-official-tests";
let scratch: Scratch;
let mcp: McpServer;
let http: HttpServer;
let front: Server;
let url: string;

beforeAll(async () => {
  scratch = createScratch();
  protocolInternals.extend = addFixtures;
  mcp = await createMcpServer();
  http = await serveHttp(mcp, { tokens: [TOKEN], rate: 1_000 });
  // The official tests send no token; everything else of a request is passed on as it is, so that hosts and origins are checked.
  front = createServer((incoming, response) => {
    const headers = { ...incoming.headers, authorization: `Bearer ${TOKEN}` };
    const { port } = new URL(http.url);
    const sent = request(
      { host: "127.0.0.1", port, path: incoming.url, method: incoming.method, headers },
      (answer) => {
        response.writeHead(answer.statusCode ?? 500, answer.headers);
        answer.pipe(response);
      },
    );
    response.on("close", () => sent.destroy());
    sent.on("error", () => response.destroy());
    incoming.pipe(sent);
  });
  await new Promise<void>((resolve) => front.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(front.address() as AddressInfo).port}/mcp`;
});
afterAll(async () => {
  delete protocolInternals.extend;
  front?.closeAllConnections();
  front?.close();
  await http?.close();
  await mcp?.close();
  scratch?.remove();
});

/** The program of a package, or why it can't be run. */
function programOf(name: string): { file: string; reason?: string } {
  const folder = join(PACKAGES, name);
  if (!existsSync(folder))
    return { file: "", reason: "it is not installed: npm install --no-save --prefix tests/mcp/programs" };
  const { bin } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as {
    bin: string | Record<string, string>;
  };
  const file = join(folder, typeof bin === "string" ? bin : (Object.values(bin)[0] ?? ""));
  const reason = whyNoRuntime(NODE_24.program);
  return { file, ...(reason !== undefined && { reason }) };
}

describe("the official conformance tests", () => {
  test.for(["2025-11-25", "2026-07-28"])("of revision %s pass", async (revision, { skip }) => {
    const { file, reason } = programOf("conformance");
    if (reason !== undefined) return skip(reason);
    const args = ["server", "--url", url, "--requirements", revision];
    const { stdout } = await run(NODE_24.program, [file, ...args], {
      cwd: scratch.path,
      maxBuffer: 64 << 20,
      timeout: 200_000,
    }).catch((error: { stdout: string; stderr: string }) =>
      Promise.reject(new Error(`${error.stdout.slice(-6_000)}\n${error.stderr.slice(-2_000)}`)),
    );
    expect(stdout).toMatch(/pass/i);
  });
});

describe("the inspector", () => {
  test("has nothing against the schemas of all tools", async ({ skip }) => {
    const { file, reason } = programOf("inspector");
    if (reason !== undefined) return skip(reason);
    const bench = createBench(scratch);
    const server = [
      process.execPath,
      fileURLToPath(new URL("../../dist/src/cli.js", import.meta.url)),
      "mcp",
      "--multi",
      "--structured",
      "--tools",
      "browse,git,snapshot,ports,runs",
      "--repo",
      createRepository(join(bench.path, "repo")),
    ];
    const args = [file, "--cli", ...server, "--method", "tools/list", "--strict"];
    const { stdout } = await run(NODE_24.program, args, { cwd: bench.path, env: bench.env, timeout: 120_000 });
    expect((JSON.parse(stdout) as { tools: unknown[] }).tools).toHaveLength(20);
  });
});

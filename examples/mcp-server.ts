import { strict as assert } from "node:assert";
// #region server
import { createMcpServer, serveHttp } from "glovebox/mcp";

const mcp = await createMcpServer({
  sandbox: { backend: "local", limits: { pids: 256 } },
  tools: ["browse"],
});
const http = await serveHttp(mcp, { tokens: [process.env["MCP_TOKEN"] ?? "a-token-for-this-example"] });
console.log(http.url.replace(/\d+\/mcp$/, "…/mcp"));
// #endregion server

/** What a client does: one call of a tool. */
async function call(token: string): Promise<Response> {
  return await fetch(http.url, {
    method: "POST",
    headers: {
      authorization: `Bearer ${token}`,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": "2025-06-18",
    },
    body: JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method: "tools/call",
      params: { name: "exec", arguments: { command: "echo $((6 * 7))" } },
    }),
  });
}

assert.match(await (await call("a-token-for-this-example")).text(), /exit code 0\\n42/);
assert.equal((await call("a-wrong-token-for-it")).status, 401);
// #region close
await http.close();
await mcp.close();
// #endregion close
console.log("served, refused, closed");

import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import type { NodeSpec } from "../../src/harness/types.js";
import { of, runInSandbox, useSandbox } from "../support/harness/engine-run.js";
import { PROGRAMS } from "./agent-bench.js";

const place = useSandbox(() => ({
  mounts: [{ source: PROGRAMS }, { source: dirname(process.execPath) }],
  env: { PATH: `${dirname(process.execPath)}:/usr/local/bin:/usr/bin:/bin` },
}));

test("an agent that is written with the SDK of ACP uses the files, the terminal and the permission", async ({
  skip,
}) => {
  const sdk = join(PROGRAMS, "node_modules", "@agentclientprotocol", "sdk", "package.json");
  if (!existsSync(sdk)) skip("its package is not installed: npm install --no-save --prefix tests/agents/programs");
  const command = ["node", join(PROGRAMS, "sdk-agent.mjs")];
  const node = { kind: "agent", id: "work", agent: "acp", command, prompt: "go" } as NodeSpec;
  const { outcome } = await runInSandbox(place.sandbox, of(node));
  expect(JSON.parse(outcome.nodes[0]?.output ?? "")).toEqual({
    outcome: { outcome: "selected", optionId: "yes" },
    content: "by the SDK\n",
    exitCode: 0,
    output: "by the SDK\n",
  });
});

test("an agent that is written with the SDK's draft of version 2 works, and continues its session", async ({
  skip,
}) => {
  const sdk = join(PROGRAMS, "node_modules", "@agentclientprotocol", "sdk", "dist", "v2");
  if (!existsSync(sdk)) skip("its package is not installed: npm install --no-save --prefix tests/agents/programs");
  const command = ["node", join(PROGRAMS, "sdk-agent-v2.mjs")];
  const node = (id: string, more: object): NodeSpec =>
    ({ kind: "agent", id, agent: "acp", command, prompt: `go ${id}`, limits: { wall: 30_000 }, ...more }) as NodeSpec;
  const nodes = [node("one", {}), node("two", { continue: "one" })];
  const { outcome, events } = await runInSandbox(place.sandbox, { name: "v2", nodes });
  expect(outcome.error).toBeUndefined();
  const answers = outcome.nodes.map(({ output }) => JSON.parse(output) as unknown);
  const allowed = { outcome: "selected", optionId: "yes" };
  // Each node has a process of its own, which keeps nothing.
  expect(answers).toEqual(["one", "two"].map((id) => ({ outcome: allowed, said: [`go ${id}`] })));
  expect(outcome.nodes).toMatchObject(["one", "two"].map(() => ({ agent: { sessionId: "sdk-2", turns: 2 } })));
  expect(await place.sandbox.readFile("sdk.txt")).toBe("by version 2\n");
  expect(events.filter(({ type }) => type === "agent.tool_call")).toHaveLength(2);
});

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

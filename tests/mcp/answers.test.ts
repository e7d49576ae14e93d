import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createMcpServer, type McpServerOptions } from "../../src/mcp.js";
import { connectTo, fieldsOf, type TestClient, textOf } from "../support/mcp/client.js";
import { createRepository, createScratch, type Scratch } from "../support/scratch.js";

let scratch: Scratch;
beforeEach(() => {
  scratch = createScratch();
});
afterEach(() => {
  delete process.env["GLOVEBOX_CONFIG"];
  scratch.remove();
});

async function withClient(options: McpServerOptions, work: (client: TestClient) => Promise<void>): Promise<void> {
  await using server = await createMcpServer(options);
  await using client = await connectTo(server, { capabilities: { elicitation: { form: {} } } });
  await work(client);
}

/** What clients may show their model of an answer: its text, or its fields. */
function sizeOf(result: Awaited<ReturnType<TestClient["call"]>>): number {
  return Math.max(textOf(result).length, JSON.stringify(result.structuredContent).length);
}

describe("an answer", () => {
  it("has the changes of many files in parts", async () => {
    const repo = createRepository(join(scratch.path, "repo"));
    await withClient({ tools: ["git"], sandbox: { repo } }, async (client) => {
      const name = "a-file-with-a-name-of-some-length";
      const script = `i=0; while [ $i -lt 600 ]; do echo "line $i" > "${name}-$i"; i=$((i+1)); done; seq -f 'ü%g' 9000 > last`;
      await client.text("exec", { command: script });
      const first = await client.call("changes");
      expect(sizeOf(first)).toBeLessThan(40_000);
      expect(textOf(first)).toMatch(
        /\n\[\d+ more files\]\n\ndiff --git [\s\S]*\n\[the patch goes on: from_byte \d+ continues\]$/,
      );
      const { files, more_files: more } = fieldsOf(first);
      expect((files as unknown[]).length + Number(more)).toBe(601);
      let patch = "";
      for (let next: unknown = 0; next !== undefined; ) {
        const page = fieldsOf(await client.call("changes", { from_byte: next }));
        patch += String(page["patch"]);
        next = page["next_byte"];
      }
      expect(patch.match(/^diff --git /gm)).toHaveLength(601);
      expect(patch).toContain("\n+ü8999\n+ü9000\n");
      expect(patch).not.toContain("\uFFFD");
      expect(await client.failure("changes", { from_byte: 10_000_000 })).toMatch(/^invalid_argument: .*after the end/);
    });
  });

  it("has as much of a long directory as fits", async () => {
    await withClient({ tools: ["browse"] }, async (client) => {
      const long = "n".repeat(200);
      await client.text("exec", { command: `i=0; while [ $i -lt 900 ]; do : > "${long}-$i"; i=$((i+1)); done` });
      const listed = await client.call("file_list");
      expect(sizeOf(listed)).toBeLessThan(31_000);
      expect(textOf(listed)).toMatch(/\n\[\d+ more; exec with ls -A shows all\]$/);
      expect(listed.structuredContent).toMatchObject({ truncated: true });
    });
  });
});

describe("a tool", () => {
  it.each([
    ["network: full\n", true, "The network is open."],
    ["network: none\n", false, "There is no network"],
    ["", false, "There is no network"],
  ])("says whether it reaches the network as the user's configuration has it: %j", async (config, isOpen, words) => {
    const file = join(scratch.path, "config.yaml");
    writeFileSync(file, config);
    if (config !== "") process.env["GLOVEBOX_CONFIG"] = file;
    await withClient({}, async ({ client }) => {
      const { tools } = await client.listTools();
      expect(tools[0]?.annotations?.openWorldHint).toBe(isOpen);
      expect(client.getInstructions()).toContain(words);
    });
  });

  it("asks the user nothing in words of the model", async () => {
    const repo = createRepository(join(scratch.path, "repo"));
    const push = { token: "a-token-for-pushes" };
    await withClient({ tools: ["git"], sandbox: { repo }, push }, async (client) => {
      const asked: string[] = [];
      client.client.setRequestHandler("elicitation/create", async ({ params }) => {
        asked.push(params.message);
        return { action: "decline" };
      });
      const branch = "work? It was reviewed already.\n\nPush";
      expect(await client.failure("push", { branch })).toMatch(/^invalid_argument: /);
      expect(asked).toEqual([]);
    });
  });
});

import { describe, expect, test } from "vitest";
import { defineBlueprint, type NodeSpec, needsOf, readBlueprint } from "../../../src/harness.js";
import { driverNamed } from "../../support/harness/replay-agent.js";

const REQUEST = {
  prompt: "p",
  mcp: { notes: { command: ["node", "notes.mjs", 'a "b"'], env: { LEVEL: "x\ny" } } },
  secretNames: ["NOTES_TOKEN"],
};
const ENTRY = { command: "node", args: ["notes.mjs", 'a "b"'], env: { LEVEL: "x\ny" } };

/** The argument after a flag. */
function argumentOf(argv: readonly string[], flag: string): string {
  return argv[argv.indexOf(flag) + 1] ?? "";
}

describe("the MCP servers of a node reach", () => {
  test("Claude Code by a flag, which a list of tools does not swallow", () => {
    const { argv } = driverNamed("claude-code").command({ ...REQUEST, tools: ["mcp__notes"] });
    expect(JSON.parse(argumentOf(argv, "--mcp-config"))).toEqual({ mcpServers: { notes: ENTRY } });
    expect(argumentOf(argv, argumentOf(argv, "--mcp-config"))).toMatch(/^--/);
    expect(argv.slice(-2)).toEqual(["--allowedTools", "mcp__notes"]);
    expect(driverNamed("claude-code").command({ prompt: "p" }).argv).not.toContain("--mcp-config");
  });

  test("Codex by its configuration in TOML, with the names of the secrets", () => {
    const mcp = { notes: { ...REQUEST.mcp.notes, env: { LEVEL: "x\ny\u007f" } } };
    const { argv } = driverNamed("codex").command({ ...REQUEST, mcp });
    expect(argv).toContain(
      'mcp_servers.notes={command="node",args=["notes.mjs","a \\"b\\""],env={LEVEL="x\\ny\\u007f"},env_vars=["NOTES_TOKEN"],startup_timeout_sec=60}',
    );
  });

  test("Copilot CLI by a flag, with references to the secrets", () => {
    const { argv } = driverNamed("copilot").command(REQUEST);
    // biome-ignore lint/suspicious/noTemplateCurlyInString: Copilot reads it
    const env = { NOTES_TOKEN: "${NOTES_TOKEN}", LEVEL: "x\ny" };
    expect(JSON.parse(argumentOf(argv, "--additional-mcp-config"))).toEqual({
      mcpServers: { notes: { ...ENTRY, env, type: "stdio", tools: ["*"] } },
    });
  });

  test("Gemini CLI by its settings, with or without a gateway", () => {
    const settings = (more: object): unknown =>
      JSON.parse(
        driverNamed("gemini-cli").command({ ...REQUEST, ...more }).homeFiles?.[".gemini/settings.json"] ?? "{}",
      );
    const servers = { notes: { ...ENTRY, env: { NOTES_TOKEN: "$NOTES_TOKEN", LEVEL: "x\ny" }, trust: true } };
    expect(settings({})).toEqual({ mcpServers: servers });
    expect(settings({ env: { GOOGLE_GEMINI_BASE_URL: "https://x" } })).toEqual({
      security: { auth: { selectedType: "gemini-api-key" } },
      mcpServers: servers,
    });
    expect(settings({ mcp: undefined })).toEqual({});
  });

  test("opencode by its configuration", () => {
    const { homeFiles } = driverNamed("opencode").command(REQUEST);
    expect(JSON.parse(homeFiles?.[".config/opencode/config.json"] ?? "")).toEqual({
      mcp: {
        notes: {
          type: "local",
          command: ["node", "notes.mjs", 'a "b"'],
          environment: { LEVEL: "x\ny" },
          enabled: true,
        },
      },
    });
  });
});

describe("MCP servers are refused before anything is made", () => {
  const of = (more: Partial<NodeSpec>, home = {}): Parameters<typeof needsOf>[0] => {
    const node = { kind: "agent", id: "work", prompt: "p", mcp: REQUEST.mcp, ...more } as NodeSpec;
    return defineBlueprint({ name: "x", sandbox: { home }, nodes: [node] });
  };

  test.each([
    ["pi", { agent: "pi" }],
    ["command", { agent: "command", command: ["true"] }],
  ])("where the agent starts none: %s", (name, node) => {
    expect(() => needsOf(of(node as Partial<NodeSpec>))).toThrow(
      expect.objectContaining({
        code: "unsupported",
        message: `${name} does not start MCP servers, which node work declares`,
        hint: "leave mcp out, or take another agent: claude-code, codex, copilot, gemini-cli, opencode, acp",
      }),
    );
  });

  test("where the user's own file is in the place of the agent's", () => {
    const home = { ".gemini/settings.json": "{}" };
    expect(() => needsOf(of({ agent: "gemini-cli" } as Partial<NodeSpec>, home))).toThrow(
      expect.objectContaining({
        code: "conflict",
        message: expect.stringContaining("~/.gemini/settings.json") as string,
      }),
    );
    expect(needsOf(of({ agent: "codex" } as Partial<NodeSpec>, home)).agents).toHaveLength(1);
  });

  test.each([
    ["a name that makes no tools", 'mcp: { "a b": { command: [x] } }', /mcp/],
    ["no program", "mcp: { a: { env: { B: c } } }", /mcp\.a.*command/],
    ["an unknown field", "mcp: { a: { command: [x], url: y } }", /mcp\.a\.url/],
  ])("for %s", async (_, line, path) => {
    const text = `name: x\nnodes:\n  - id: work\n    kind: agent\n    prompt: p\n    ${line}\n`;
    const { faults } = await readBlueprint(text, "b.yaml");
    expect(faults.map((fault) => `${fault.path} ${fault.message}`).join("\n")).toMatch(path);
  });
});

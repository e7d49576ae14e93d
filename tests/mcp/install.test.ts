import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { CLIENTS, type ClientName, installClient, removeClient } from "../../src/mcp.js";
import { type Bench, createBench, program } from "../support/cli.js";

let bench: Bench;
beforeEach(() => {
  bench = createBench();
});
afterEach(() => bench.remove());

const FILES: Readonly<Record<ClientName, string>> = {
  "claude-code": ".claude.json",
  codex: ".codex/config.toml",
  cursor: ".cursor/mcp.json",
  vscode: ".config/Code/User/mcp.json",
  gemini: ".gemini/settings.json",
  opencode: ".config/opencode/opencode.json",
};

const read = (name: ClientName): string => readFileSync(join(bench.path, FILES[name]), "utf8");
const install = (name: ClientName, ...more: string[]): ReturnType<Bench["run"]> =>
  bench.run(["mcp", "install", "--client", name, ...more]);

function put(name: ClientName, text: string): string {
  const file = join(bench.path, FILES[name]);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  return file;
}

describe("glovebox mcp install", () => {
  it.each(CLIENTS)("writes the entry of %s once, and takes it back", async (name) => {
    const first = await install(name, "--repo", ".", "--network", "allow=example.com", "--multi");
    expect(first).toMatchObject({ code: 0, stdout: `${join(bench.path, FILES[name])}\n` });
    const written = read(name);
    for (const word of [process.execPath, program, "--repo=.", "--network=allow=example.com", "--multi"]) {
      expect(written).toContain(JSON.stringify(word));
    }
    expect(statSync(join(bench.path, FILES[name])).mode & 0o077).toBe(0);
    const again = await install(name, "--repo", ".", "--network", "allow=example.com", "--multi");
    expect(again).toMatchObject({ code: 0, stdout: "" });
    expect(read(name)).toBe(written);
    expect((await install(name, "--remove")).code).toBe(0);
    expect(existsSync(join(bench.path, FILES[name]))).toBe(false);
    expect(await install(name, "--remove")).toMatchObject({ code: 0, stdout: "" });
  });

  it("leaves everything else in a JSON file as it was", async () => {
    const before =
      '{\n    "theme": "dark",\n    "mcpServers": {\n        "other": {\n            "command": "x"\n        }\n    }\n}\n';
    const file = put("claude-code", before);
    chmodSync(file, 0o640);
    await install("claude-code");
    expect(JSON.parse(read("claude-code"))).toMatchObject({
      theme: "dark",
      mcpServers: {
        other: { command: "x" },
        glovebox: { type: "stdio", command: process.execPath, args: [program, "mcp"] },
      },
    });
    expect(statSync(file).mode & 0o777).toBe(0o640);
    await install("claude-code", "--remove");
    expect(read("claude-code")).toBe(before);
  });

  it("leaves everything else in a TOML file as it was, also between other tables", async () => {
    const before = [
      'model = "x" # a comment',
      "",
      "[mcp_servers.other]",
      'command = "y"',
      'text = """',
      "[mcp_servers.glovebox]",
      '"""',
      "",
      "[profiles.z]",
      'model = "w"',
      "",
    ].join("\n");
    put("codex", before);
    await install("codex");
    const written = read("codex");
    expect(written.startsWith(before)).toBe(true);
    expect(written).toContain("[mcp_servers.glovebox]\ncommand = ");
    expect(written).toContain("startup_timeout_sec = 30");
    put("codex", `${written}\n[more]\na = 1\n`);
    await install("codex", "--multi");
    expect(read("codex")).toMatch(
      /\[profiles\.z\][\s\S]*\[mcp_servers\.glovebox\][\s\S]*"--multi"\][\s\S]*\[more\]\na = 1\n$/,
    );
    expect(read("codex").match(/^command = /gm)).toHaveLength(2);
    put("codex", written);
    await install("codex", "--remove");
    expect(read("codex")).toBe(before);
  });

  it("refuses a file that it would spoil, and changes nothing", async () => {
    const commented = '{\n  // a comment\n  "servers": {}\n}\n';
    put("vscode", commented);
    const { code, stderr } = await install("vscode");
    expect(code).toBe(1);
    expect(stderr).toMatch(/is not plain JSON.*nothing was changed\nhint: .*--print/);
    expect(read("vscode")).toBe(commented);
    put("cursor", '{ "mcpServers": [] }');
    expect((await install("cursor")).stderr).toContain("has no mapping at mcpServers");
    for (const line of [
      'mcp_servers.glovebox = { command = "x" }',
      "mcp_servers = {}",
      'mcp_servers.glovebox.command = "x"',
    ]) {
      put("codex", `${line}\n`);
      expect((await install("codex")).stderr).toContain("in another form");
      expect(read("codex")).toBe(`${line}\n`);
    }
  });

  it("follows no link", async () => {
    const aim = join(bench.path, "aim.json");
    writeFileSync(aim, "{}");
    symlinkSync(aim, join(bench.path, ".claude.json"));
    const linked = await install("claude-code");
    expect([linked.code, linked.stderr]).toEqual([1, expect.stringContaining("is a link; nothing was changed")]);
    mkdirSync(join(bench.path, "elsewhere"));
    symlinkSync(join(bench.path, "elsewhere"), join(bench.path, ".cursor"));
    expect((await install("cursor")).stderr).toContain("is a link");
    expect(readFileSync(aim, "utf8")).toBe("{}");
    expect(existsSync(join(bench.path, "elsewhere", "mcp.json"))).toBe(false);
  });

  it("writes no secret", async () => {
    const { code, stderr } = await install("codex", "--env", "API_KEY=very-secret-value");
    expect(code).toBe(2);
    expect(stderr).toContain("--env API_KEY=… looks like a secret");
    expect(stderr).not.toContain("very-secret-value");
    expect(existsSync(join(bench.path, ".codex"))).toBe(false);
    await install("codex", "--secret", "API_KEY=api.example.com", "--env", "CI=1");
    expect(read("codex")).toContain('"--secret=API_KEY=api.example.com"');
  });

  it("prints the entry, and writes for one project", async () => {
    const { stdout } = await install("codex", "--print", "--multi");
    expect(JSON.parse(stdout)).toEqual({ command: process.execPath, args: [program, "mcp", "--multi"] });
    expect(existsSync(join(bench.path, ".codex"))).toBe(false);
    await install("claude-code", "--scope", "project", "--as", "box");
    expect(JSON.parse(readFileSync(join(bench.path, ".mcp.json"), "utf8"))).toHaveProperty("mcpServers.box");
    rmSync(join(bench.path, ".mcp.json"));
  });

  it("refuses what it does not know", async () => {
    expect(await bench.run(["mcp", "install"])).toMatchObject({ code: 2 });
    expect(await install("emacs" as ClientName)).toMatchObject({ code: 2 });
    expect((await install("codex", "--http", "1")).stderr).toContain("does not go together with install");
    await expect(
      installClient({ client: "codex", home: bench.path }, { command: "node", args: [] }),
    ).rejects.toMatchObject({
      code: "invalid_argument",
    });
    await expect(removeClient({ client: "codex", home: bench.path, name: "a.b" })).rejects.toMatchObject({
      code: "invalid_argument",
    });
  });
});

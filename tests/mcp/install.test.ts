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

  it.each([
    ["comments", '{\n  // mine\n  "servers": {\n    "a": { "command": "x" } // here\n    /* and here */\n  }\n}\n'],
    ["trailing commas", '{\n\t"servers": {\n\t\t"a": {"command": "x", "args": ["1", "2"],},\n\t},\n}\n'],
    ["one line", '{"x":[1.0,2e3],"servers":{"a":{"command":"x"}}}'],
    ["no servers", '{\r\n    "x": "a \\" // {"\r\n}\r\n'],
    ["the same key twice", '{\n  "x": 1,\n  "x": 2,\n  "servers": {\n    "a": {}\n  }\n}'],
  ])("leaves every byte of a JSON file with %s where it was", async (_, before) => {
    put("vscode", before);
    expect((await install("vscode")).code).toBe(0);
    const written = read("vscode");
    expect(written).toContain(JSON.stringify(program));
    expect(await install("vscode")).toMatchObject({ code: 0, stdout: "" });
    expect(read("vscode")).toBe(written);
    expect((await install("vscode", "--remove")).code).toBe(0);
    expect(read("vscode")).toBe(before);
  });

  it("keeps what the user added to the entry, also when the flags change", async () => {
    await install("claude-code");
    const added = read("claude-code").replace('"args": [', '"env": { "A": "b" }, // mine\n      "args": [');
    put("claude-code", added);
    expect(await install("claude-code")).toMatchObject({ code: 0, stdout: "" });
    await install("claude-code", "--multi");
    expect(read("claude-code")).toContain('"env": { "A": "b" }, // mine\n');
    expect(read("claude-code")).toContain('"--multi"');

    await install("codex");
    const more = 'env_vars = ["HOME"] # mine\n\n[mcp_servers.glovebox.env]\nA = "b"\n\n# the next\n[other]\nc = 1\n';
    put("codex", `${read("codex").replace("startup_timeout_sec = 30", "startup_timeout_sec = 90")}${more}`);
    expect(await install("codex")).toMatchObject({ code: 0, stdout: "" });
    await install("codex", "--multi");
    expect(read("codex")).toContain(more);
    expect(read("codex")).toMatch(
      /^\[mcp_servers\.glovebox\]\ncommand = .*\nargs = .*"--multi"\]\nstartup_timeout_sec = 90\n/,
    );
    await install("codex", "--remove");
    expect(read("codex")).toBe("# the next\n[other]\nc = 1\n");
  });

  it("replaces an entry of another kind", async () => {
    put("claude-code", '{ "mcpServers": { "glovebox": { "type": "http", "url": "http://127.0.0.1:1/mcp" } } }');
    await install("claude-code");
    expect(read("claude-code")).not.toContain("url");
    put("codex", '[mcp_servers.glovebox]\n# mine\nurl = "http://127.0.0.1:1/mcp"\n');
    await install("codex");
    expect(read("codex")).toMatch(/^\[mcp_servers\.glovebox\]\n# mine\ncommand = /);
    expect(read("codex")).not.toContain("url");
  });

  it("keeps the mode of the file, whatever the mask is", async () => {
    const file = put("cursor", "{}\n");
    chmodSync(file, 0o664);
    await install("cursor");
    expect(statSync(file).mode & 0o777).toBe(0o664);
  });

  it("follows the variables by which clients find their files", async () => {
    const folder = join(bench.path, "elsewhere");
    const places = [
      ["codex", "CODEX_HOME", "config.toml"],
      ["claude-code", "CLAUDE_CONFIG_DIR", ".claude.json"],
      ["opencode", "XDG_CONFIG_HOME", "opencode/opencode.json"],
      ["vscode", "XDG_CONFIG_HOME", "Code/User/mcp.json"],
    ];
    for (const [name = "", variable = "", file = ""] of places) {
      const { stdout } = await bench.run(["mcp", "install", "--client", name], { env: { [variable]: folder } });
      expect(stdout).toBe(`${join(folder, file)}\n`);
      expect(existsSync(join(folder, file))).toBe(true);
    }
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
    for (const broken of ['{ "servers": {}', '{ "servers": {} } x', "{ servers: {} }", '{ "a": 1 "servers": {} }']) {
      put("vscode", broken);
      const { code, stderr } = await install("vscode");
      expect([broken, code]).toEqual([broken, 1]);
      expect(stderr).toMatch(/is not JSON; nothing was changed\nhint: .*--print/);
      expect(read("vscode")).toBe(broken);
    }
    put("cursor", '{ "mcpServers": [] }');
    expect((await install("cursor")).stderr).toContain("has no mapping at mcpServers");
    for (const line of [
      'mcp_servers.glovebox = { command = "x" }',
      "mcp_servers = {}",
      'mcp_servers.glovebox.command = "x"',
      '[mcp_servers]\nglovebox = { command = "x" }',
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
    for (const flags of [
      ["--repo", "https://me:very-secret-value@git.example.com/a/b"],
      ["--repo", "https://very-secret-value@git.example.com/a/b"],
      ["--secret", "API_KEY=very-secret-value"],
      ["--label", "mine=very-secret-value"],
    ]) {
      const env = { MY_API_KEY: "very-secret-value" };
      const refused = await bench.run(["mcp", "install", "--client", "codex", ...flags], { env });
      expect([flags, refused.code]).toEqual([flags, 2]);
      expect(refused.stderr).toContain(`${flags[0]} `);
      expect(refused.stderr).not.toContain("very-secret-value");
      expect(existsSync(join(bench.path, ".codex"))).toBe(false);
    }
    await install("codex", "--secret", "API_KEY=api.example.com", "--env", "CI=1", "--env", "API_KEY", "--allow-push");
    expect(read("codex")).toContain('"--secret=API_KEY=api.example.com"');
  });

  it("prints what to add by hand, or what it would change, and writes for one project", async () => {
    expect((await install("codex", "--print", "--multi")).stdout).toMatch(
      /^\[mcp_servers\.glovebox\]\ncommand = "\/.*"\nargs = \[".*", "mcp", "--multi"\]\nstartup_timeout_sec = 30\n/,
    );
    expect(JSON.parse((await install("opencode", "--print")).stdout)).toEqual({
      mcp: { glovebox: { type: "local", command: [process.execPath, program, "mcp"], enabled: true } },
    });
    const { stdout } = await install("codex", "--print", "--json", "--multi");
    expect(JSON.parse(stdout)).toEqual({ command: process.execPath, args: [program, "mcp", "--multi"] });
    const planned = await install("codex", "--dry-run", "--json");
    const file = join(bench.path, FILES.codex);
    expect(JSON.parse(planned.stdout)).toEqual({ client: "codex", file, changed: true });
    expect((await install("codex", "--dry-run")).stdout).toBe(`${file}\n`);
    expect(existsSync(join(bench.path, ".codex"))).toBe(false);
    await install("codex");
    const text = read("codex");
    expect((await install("codex", "--dry-run", "--remove")).stdout).toBe(`${file}\n`);
    expect(read("codex")).toBe(text);
    expect((await install("codex", "--dry-run")).stdout).toBe("");
    await install("claude-code", "--scope", "project", "--as", "box");
    expect(JSON.parse(readFileSync(join(bench.path, ".mcp.json"), "utf8"))).toHaveProperty("mcpServers.box");
    rmSync(join(bench.path, ".mcp.json"));
  });

  it.each([
    [["--memory", "much"], "--memory takes a size"],
    [["--tools", "nope"], "--tools takes"],
    [["--network", "bogus"], "--network"],
    [["--max-cost", "5"], "--max-cost needs --tools runs"],
  ])("refuses %j, which the server would refuse", async (flags, message) => {
    const { code, stderr } = await install("codex", ...flags);
    expect(code).toBe(2);
    expect(stderr).toContain(message);
    expect(existsSync(join(bench.path, ".codex"))).toBe(false);
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

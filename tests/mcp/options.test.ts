import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createMcpServer, type McpServerOptions } from "../../src/mcp.js";
import { listSandboxes } from "../../src/sandbox.js";
import { serveGit } from "../support/git/server.js";
import { connectTo, ERAS, fieldsOf, type TestClient, textOf } from "../support/mcp/client.js";
import { createRepository, createScratch, git, type Scratch } from "../support/scratch.js";

let scratch: Scratch;
beforeAll(() => {
  scratch = createScratch();
});
afterAll(() => scratch.remove());

/** A client of a server with these options, and everything gone afterwards. */
async function withClient(
  options: McpServerOptions,
  work: (client: TestClient) => Promise<void>,
  era: Parameters<typeof connectTo>[1] = {},
): Promise<void> {
  await using server = await createMcpServer(options);
  await using client = await connectTo(server, era);
  await work(client);
}

describe("a server", () => {
  it("opens nothing before the first call, one sandbox for all calls, and closes it with the connection", async () => {
    await using server = await createMcpServer();
    {
      await using client = await connectTo(server);
      await client.client.listTools();
      expect(await listSandboxes()).toEqual([]);
      await Promise.all([client.text("exec", { command: "touch a" }), client.text("exec", { command: "touch b" })]);
      expect(await client.text("exec", { command: "ls" })).toBe("exit code 0\na\nb");
      expect(await listSandboxes()).toHaveLength(1);
    }
    await expect.poll(() => listSandboxes()).toEqual([]);
  });

  it("gives fields only if it is asked to, and then as its schema says", async () => {
    await withClient({ structured: true }, async (client) => {
      // The client checks what it gets against the schema.
      const { tools } = await client.client.listTools();
      expect(tools.every(({ outputSchema }) => outputSchema !== undefined)).toBe(true);
      const result = await client.call("exec", { command: "echo 1; exit 2" });
      expect(result.structuredContent).toMatchObject({ stdout: "1\n", exit_code: 2 });
      expect(textOf(result)).toBe("exit code 2\n1");
      await client.call("file_write", { path: "x", content: "1\n" });
      expect((await client.call("file_read", { path: "x" })).structuredContent).toMatchObject({
        content: "1",
        total_lines: 1,
      });
    });
  });

  it("leaves escape sequences in if it is told to", async () => {
    await withClient({ ansi: true }, async (client) => {
      expect(await client.text("exec", { command: "printf '\\033[31mred'" })).toBe("exit code 0\n\u001b[31mred");
    });
  });

  it("hides secrets in output, pages, files and errors", async () => {
    const secret = "a-secret-of-some-length";
    await withClient({ tools: ["browse"], sandbox: { env: { API_TOKEN: secret } } }, async (client) => {
      const result = await client.call("exec", { command: 'echo "<$API_TOKEN>"; echo "$API_TOKEN" > /tmp/kept' });
      expect(JSON.stringify(result)).not.toContain(secret);
      expect(textOf(result)).toBe("exit code 0\n<[REDACTED:API_TOKEN]>");
      const id = fieldsOf(result)["process_id"];
      for (const name of ["process_read", "file_read"]) {
        const again = await client.call(
          name,
          name === "file_read" ? { path: "/tmp/kept" } : { process_id: id, from_byte: 0 },
        );
        expect(JSON.stringify(again)).not.toContain(secret);
        expect(textOf(again)).toContain("[REDACTED:API_TOKEN]");
      }
      expect(await client.failure("file_read", { path: `/tmp/${secret}` })).not.toContain(secret);
      // Fields for programs that no text is made of.
      await client.text("exec", { command: 'touch "$API_TOKEN"' });
      expect(JSON.stringify(await client.call("file_list"))).toContain("[REDACTED:API_TOKEN]");
      expect(JSON.stringify(await client.call("file_list"))).not.toContain(secret);
      // The end of a page is never within a secret.
      const split = await client.call("exec", {
        command: 'printf "%s" "$API_TOKEN" | head -c 10; sleep 600',
        yield_ms: 1_000,
      });
      expect(textOf(split)).not.toContain(secret.slice(0, 10));
    });
  });

  it("pages on exactly where an answer was cut, whatever was hidden before, and shows no part of a secret", async () => {
    const secret = "the-secret-of-this-one-test";
    await withClient({ maxOutput: 1_000, sandbox: { env: { API_TOKEN: secret } } }, async (client) => {
      // The cut comes within a character, after secrets that are longer than what takes their place; the text for many reads is in one line.
      for (const start of ["", "x"]) {
        const script = `printf "$1$API_TOKEN$API_TOKEN"; i=0; while [ $i -lt 600 ]; do printf ü; i=$((i+1)); done; printf "$API_TOKEN."; sleep 0.1; seq 500`;
        const cut = await client.call("exec", { argv: ["sh", "-c", script, "sh", start] });
        const [whole = "", head = "", id = "", from = ""] =
          /^exit code 0\n(.*)\n\[\.\.\. \d+ bytes left out; process_read with process_id "(p\d+)", .* from_byte (\d+)/.exec(
            textOf(cut),
          ) ?? [];
        expect(whole).not.toBe("");
        let all = "";
        for (let cursor = Number(from); ; ) {
          const page = fieldsOf(
            await client.call("process_read", { process_id: id, stream: "stdout", from_byte: cursor }),
          );
          all += String(page["output"]);
          if (page["next_byte"] === cursor) break;
          cursor = Number(page["next_byte"]);
        }
        const hidden = "[REDACTED:API_TOKEN]";
        const numbers = Array.from({ length: 500 }, (_, at) => `${at + 1}\n`).join("");
        const expected = `${start}${hidden}${hidden}${"ü".repeat(600)}${hidden}.${numbers}`;
        expect(expected.startsWith(head)).toBe(true);
        expect(expected.endsWith(all)).toBe(true);
        expect(head.length + all.length).toBeGreaterThanOrEqual(expected.length);
      }
      const { process_id: id } = fieldsOf(await client.call("exec", { command: 'printf "<$API_TOKEN>"' }));
      for (let at = 1; at <= secret.length; at += 1) {
        const page = await client.call("process_read", { process_id: id, stream: "stdout", from_byte: at });
        expect([at, fieldsOf(page)["output"]]).toEqual([at, "[REDACTED:API_TOKEN]>"]);
      }
      const end = await client.call("process_read", { process_id: id, from_byte: secret.length + 1 });
      expect(fieldsOf(end)["output"]).toBe(">");
    });
  });

  it("answers a flood with a typed refusal, and goes on", async () => {
    await withClient({ maxCalls: 4 }, async (client) => {
      const results = await Promise.all(
        Array.from({ length: 40 }, () => client.call("exec", { command: "sleep 0.5" })),
      );
      const refused = results.filter(({ isError }) => isError === true);
      expect(refused.length).toBeGreaterThanOrEqual(30);
      expect(textOf(refused[0] as never)).toMatch(/^limit_exceeded: 4 calls are running/);
      expect(await client.text("exec", { command: "echo still here" })).toContain("still here");
    });
  });

  it("opens another sandbox after one was closed from outside, and says so", async () => {
    await withClient({ sandbox: { idleTimeout: 300 } }, async (client) => {
      await client.text("exec", { command: "touch here" });
      await expect.poll(() => listSandboxes()).toEqual([]);
      expect(await client.failure("exec", { command: "ls" })).toMatch(
        /^closed: [\s\S]*hint: the next call opens another sandbox/,
      );
      expect(await client.text("exec", { command: "ls" })).toBe("exit code 0");
    });
  });

  it("refuses options that don't fit, before anything is made", async () => {
    await expect(createMcpServer({ tools: ["nope"] as never })).rejects.toMatchObject({ code: "invalid_argument" });
    await expect(createMcpServer({ multi: true, sandbox: { name: "one" } })).rejects.toMatchObject({
      code: "invalid_argument",
    });
    await expect(createMcpServer({ push: { token: "a-token" } })).rejects.toMatchObject({ code: "invalid_argument" });
    await expect(createMcpServer({ offers: { images: ["a"] } })).rejects.toMatchObject({ code: "invalid_argument" });
  });

  it("has a hint for a host that is not allowed", async () => {
    await withClient({}, async (client) => {
      const text = await client.text("exec", { command: "echo 'curl: (6) Could not resolve host: x' >&2; exit 6" });
      expect(text).toMatch(/^exit code 6\nhint: the network of the sandbox is closed: --network allow=<host>/);
    });
  });
});

describe("several sandboxes", () => {
  it("are made, listed, told apart and removed", async () => {
    await withClient({ multi: true, maxSandboxes: 2 }, async (client) => {
      expect(await client.failure("exec", { command: "ls" })).toMatch(/^invalid_argument: sandbox_id is missing/);
      const create = async (): Promise<string> =>
        String(fieldsOf(await client.call("sandbox_create", {}))["sandbox_id"]);
      const [one, two] = [await create(), await create()];
      expect(await client.failure("sandbox_create", {})).toMatch(/^limit_exceeded: You have 2 sandboxes/);
      await client.text("exec", { sandbox_id: one, command: "touch only-here" });
      expect(await client.text("exec", { sandbox_id: two, command: "ls" })).toBe("exit code 0");
      expect(await client.text("sandbox_list")).toContain(two);
      await client.text("sandbox_destroy", { sandbox_id: two });
      expect(await client.failure("exec", { sandbox_id: two, command: "ls" })).toMatch(
        /^not_found: There is no sandbox/,
      );
      expect(await client.text("sandbox_list")).not.toContain(two);
    });
  });

  it("belong to their client", async () => {
    await using server = await createMcpServer({ multi: true });
    await using first = await connectTo(server);
    await using second = await connectTo(server);
    const id = String(fieldsOf(await first.call("sandbox_create", {}))["sandbox_id"]);
    expect(await second.failure("exec", { sandbox_id: id, command: "ls" })).toMatch(/^not_found: /);
    expect(await second.failure("sandbox_destroy", { sandbox_id: id })).toMatch(/^not_found: /);
    expect(await second.text("sandbox_list")).toBe("there is none");
    expect(await first.text("exec", { sandbox_id: id, command: "echo mine" })).toContain("mine");
  });

  it("are what the user offers, and nothing more", async () => {
    const options: McpServerOptions = {
      multi: true,
      offers: { images: ["debian:12"] },
      sandbox: { network: { allow: ["example.com"] } },
    };
    await withClient(options, async (client) => {
      for (const wanted of [{ backend: "docker" }, { image: "evil:1" }, { repo: "/" }, { network: ["evil.test"] }]) {
        expect(await client.failure("sandbox_create", wanted)).toMatch(
          /^permission_denied: The user does not (?:offer|allow)/,
        );
      }
      expect(await listSandboxes()).toEqual([]);
      await client.text("sandbox_create", { network: [] });
    });
  });
});

describe("groups of tools", () => {
  it("browse", async () => {
    await withClient({ tools: ["browse"] }, async (client) => {
      await client.text("file_write", { path: "src/a.ts", content: "const needle = 1;\n" });
      expect(await client.text("file_list")).toBe("src/");
      expect(await client.text("file_list", { path: "src" })).toBe("a.ts  18");
      expect(await client.text("file_search", { pattern: "need.e" })).toContain("src/a.ts:1:const needle = 1;");
      expect(await client.text("file_search", { pattern: "need.e", literal: true })).toContain("nothing found");
      expect(await client.failure("file_list", { path: "nowhere" })).toMatch(/^not_found: /);
    });
  });

  it("snapshot", async () => {
    await withClient(
      { tools: ["snapshot"], sandbox: { repo: createRepository(join(scratch.path, "saved")) } },
      async (client) => {
        await client.text("file_write", { path: "kept", content: "1" });
        const id = fieldsOf(await client.call("snapshot"))["snapshot_id"];
        await client.text("exec", { command: "rm kept" });
        await client.text("restore", { snapshot_id: id });
        expect(await client.text("exec", { command: "cat kept" })).toBe("exit code 0\n1");
        expect(await client.failure("restore", { snapshot_id: "another" })).toMatch(
          /^not_found: There is no snapshot "another" of yours/,
        );
      },
    );
  });

  it("ports", async () => {
    await withClient({ tools: ["ports"] }, async (client) => {
      const server = "require('http').createServer((_, r) => r.end('served')).listen(4567)";
      await client.text("exec", { argv: ["node", "-e", server], yield_ms: 0 });
      const url = await client.text("port_url", { port: 4567, wait_ms: 20_000 });
      expect(await (await fetch(url)).text()).toBe("served");
    });
  });

  it.each(ERAS)("git, which pushes only after the user agreed, era %s", async (era, options) => {
    const token = "a-token-of-the-user";
    const repo = createRepository(join(scratch.path, `pushed-${era}`));
    const remote = join(scratch.path, `remotes-${era}`, "project.git");
    mkdirSync(remote, { recursive: true });
    git(remote, "init", "--quiet", "--bare", "--initial-branch=main");
    git(remote, "config", "http.receivepack", "true");
    const origin = await serveGit(dirname(remote), token);
    git(repo, "remote", "add", "origin", `${origin.origin}/project.git`);
    const answers: ("accept" | "decline")[] = ["decline", "accept"];
    const asked: string[] = [];
    const server = { tools: ["git" as const], sandbox: { repo }, push: { token } };
    await withClient(
      server,
      async (client) => {
        client.client.setRequestHandler("elicitation/create", async ({ params }) => {
          asked.push(params.message);
          return { action: answers.shift() ?? "cancel", content: {} };
        });
        expect(await client.text("changes")).toBe("nothing has changed");
        await client.text("file_write", { path: "new.txt", content: "new\n" });
        expect(await client.text("changes")).toMatch(/^added new\.txt\n\n[\s\S]*\+new/);
        expect(await client.failure("push", { branch: "work" })).toMatch(/^permission_denied: The user refused/);
        const pushed = await client.call("push", { branch: "work" });
        expect(asked).toEqual(Array(2).fill("Push 1 changed file to the branch work?"));
        expect(textOf(pushed)).toBe("pushed work");
        expect(git(remote, "show", "work:new.txt")).toBe("new");
      },
      { ...options, capabilities: { elicitation: { form: {} } } },
    ).finally(() => void origin.close());
  });

  it("git has no push unless it is allowed", async () => {
    await withClient({ tools: ["git"] }, async (client) => {
      await expect(client.call("push", { branch: "x" })).rejects.toMatchObject({ code: -32602 });
    });
  });
});

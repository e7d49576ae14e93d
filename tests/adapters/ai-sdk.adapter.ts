// node 22: the AI SDK declares it
import { HarnessCapabilityUnsupportedError, HarnessSandboxAuthenticationError } from "@ai-sdk/harness";
import { generateText, isStepCount, tool } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { describe, expect, test } from "vitest";
import { createSandboxProvider, createSandboxSession, createSandboxTools } from "../../src/adapters/ai-sdk.js";
import { deleteSnapshot, listSandboxes, listSnapshots } from "../../src/sandbox.js";
import { beats, HEARTBEAT, isStill, onEachBackend } from "./backends.js";

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

/** A model that calls these tools one after the other, and then answers with what the last one returned. */
function scripted(
  calls: readonly (readonly [name: string, input: object])[],
): InstanceType<typeof MockLanguageModelV4> {
  let next = 0;
  return new MockLanguageModelV4({
    doGenerate: async ({ prompt }: { prompt: readonly { content: { output: { value: unknown } }[] }[] }) => {
      const call = calls[next++];
      if (call === undefined) {
        const text = String(prompt.at(-1)?.content[0]?.output.value);
        return { content: [{ type: "text", text }], finishReason: { unified: "stop" }, usage, warnings: [] };
      }
      const [toolName, input] = call;
      const content = [{ type: "tool-call", toolCallId: `${next}`, toolName, input: JSON.stringify(input) }];
      return { content, finishReason: { unified: "tool-calls" }, usage, warnings: [] };
    },
  });
}

async function collect(stream: ReadableStream<Uint8Array> | null): Promise<string> {
  return stream === null ? "" : await new Response(stream).text();
}

onEachBackend(({ name, options, open }) => {
  describe("a session", () => {
    test("runs commands where and how it is told", async () => {
      const session = createSandboxSession(await open({ workDir: "/project" }));
      expect(session.description).toContain("Current working directory: /project");
      expect(await session.run({ command: "echo out; echo err >&2; exit 3" })).toEqual({
        ...{ exitCode: 3, stdout: "out\n", stderr: "err\n" },
      });
      await session.run({ command: "mkdir -p /tmp/here" });
      const env = { WHO: "me", "bad-name": "x", NONE: undefined } as unknown as Record<string, string>;
      const call = { command: "pwd; echo $WHO; env | grep -c NONE", workingDirectory: "/tmp/here", env };
      expect((await session.run(call)).stdout).toBe("/tmp/here\nme\n0\n");
    });

    test("rejects with the reason of an abort, and kills what ran", async () => {
      const sandbox = await open();
      const session = createSandboxSession(sandbox);
      const reason = new Error("enough");
      await expect(session.run({ command: "true", abortSignal: AbortSignal.abort(reason) })).rejects.toBe(reason);
      const aborting = new AbortController();
      const running = session.run({ command: HEARTBEAT, abortSignal: aborting.signal });
      await expect.poll(() => beats(sandbox)).toBe(true);
      aborting.abort(reason);
      await expect(running).rejects.toBe(reason);
      await expect.poll(() => isStill(sandbox)).toBe(true);
    });

    test("says when a deadline ended a command", async () => {
      const session = createSandboxSession(await open(), { timeout: 2000 });
      const { exitCode, stdout, stderr } = await session.run({ command: "echo begun; sleep 1000" });
      expect([exitCode, stdout]).toEqual([137, "begun\n"]);
      expect(stderr).toMatch(/^\[killed at its deadline, after 2(\.\d)? s\]\n$/);
    });

    test("spawns processes with input, output and an end", async () => {
      const session = createSandboxSession(await open());
      const process = await session.spawn({ command: "cat; echo err >&2; exit 7", stdin: true });
      const writer = process.stdin?.getWriter();
      await writer?.write(Buffer.from("through\n"));
      await writer?.close();
      expect(await Promise.all([collect(process.stdout), collect(process.stderr), process.wait()])).toEqual([
        ...["through\n", "err\n", { exitCode: 7 }],
      ]);
      const killed = await session.spawn({ command: "sleep 1000" });
      expect(killed.stdin).toBeUndefined();
      await killed.kill();
      await killed.kill();
      expect((await killed.wait()).exitCode).toBe(137);
      const aborting = new AbortController();
      const aborted = await session.spawn({ command: "sleep 1000", abortSignal: aborting.signal });
      const reason = new Error("enough");
      aborting.abort(reason);
      await expect(aborted.wait()).rejects.toBe(reason);
    });

    test("reads and writes files as the AI SDK wants it", async () => {
      const session = createSandboxSession(await open());
      await session.writeTextFile({ path: "a/notes.txt", content: "line 1\nline 2\nline 3\n" });
      const read = async (lines = {}) => await session.readTextFile({ path: "a/notes.txt", ...lines });
      expect(await read()).toBe("line 1\nline 2\nline 3\n");
      expect(await read({ startLine: 2, endLine: 3 })).toBe("line 2\nline 3");
      expect(await read({ endLine: 1 })).toBe("line 1");
      expect(await read({ startLine: 3, endLine: 99 })).toBe("line 3\n");
      expect([await read({ startLine: 0, endLine: 1 }), await read({ startLine: -2, endLine: 1 })]).toEqual([
        ...["line 1", "line 1"],
      ]);
      await session.writeTextFile({ path: "windows", content: "one\r\ntwo\r\nthree\r\n" });
      expect(await session.readTextFile({ path: "windows", startLine: 1, endLine: 2 })).toBe("one\r\ntwo");
      const bytes = new Uint8Array([0, 255, 128, 10]);
      await session.writeBinaryFile({ path: "/tmp/bytes", content: bytes });
      expect(await session.readBinaryFile({ path: "/tmp/bytes" })).toEqual(bytes);
      await session.writeTextFile({ path: "latin", content: "é", encoding: "latin1" });
      expect(await session.readBinaryFile({ path: "latin" })).toEqual(new Uint8Array([0xe9]));
      expect(await session.readTextFile({ path: "latin", encoding: "iso-8859-1" })).toBe("é");
      await session.writeFile({ path: "streamed", content: new Blob(["streamed"]).stream() });
      expect(await collect(await session.readFile({ path: "streamed" }))).toBe("streamed");
      await session.run({ command: "touch run; chmod 750 run" });
      await session.writeTextFile({ path: "run", content: "a" });
      await session.writeFile({ path: "run", content: new Blob(["b"]).stream() });
      expect((await session.run({ command: "stat -c %a run" })).stdout).toBe("750\n");
      const missing = { path: "missing" };
      expect([
        ...[await session.readFile(missing), await session.readBinaryFile(missing), await session.stat(missing)],
        ...[await session.readTextFile(missing), await session.listDirectory(missing)],
      ]).toEqual([null, null, null, null, null]);
      await expect(session.writeTextFile({ path: "a", content: "" })).rejects.toMatchObject({ name: "SandboxError" });
    });

    test("follows links in stat, shows them in lists, and deletes files only", async () => {
      const session = createSandboxSession(await open());
      await session.run({ command: "mkdir d; printf 12345 > d/f; ln -s f d/l; ln -s nowhere d/x; mkfifo d/p" });
      expect(await session.stat({ path: "d/l" })).toEqual({ type: "file", size: 5 });
      expect(await session.stat({ path: "d" })).toMatchObject({ type: "directory" });
      expect(await session.stat({ path: "d/p" })).toMatchObject({ type: "other" });
      expect(await session.stat({ path: "d/x" })).toBeNull();
      expect(await session.listDirectory({ path: "d" })).toEqual([
        ...[
          { name: "f", type: "file" },
          { name: "l", type: "symlink" },
          { name: "p", type: "other" },
        ],
        { name: "x", type: "symlink" },
      ]);
      await expect(session.listDirectory({ path: "d/f" })).rejects.toThrow();
      expect(await session.deleteFile({ path: "d/l" })).toBe(true);
      expect(await session.deleteFile({ path: "d/l" })).toBe(false);
      await expect(session.deleteFile({ path: "d" })).rejects.toThrow();
      expect(await session.stat({ path: "d/f" })).toEqual({ type: "file", size: 5 });
    });
  });

  describe("an agent", () => {
    test("repairs a file with the tools, and runs its test", async () => {
      const sandbox = await open();
      await sandbox.writeFile("sum.sh", 'echo "$(($1 - $2))"\n');
      const check = 'test "$(sh sum.sh 2 3)" = 5 && echo green || { echo red; exit 1; }';
      const model = scripted([
        ["bash", { command: check }],
        ["read", { path: "sum.sh" }],
        ["edit", { path: "sum.sh", old: "$1 - $2", new: "$1 + $2" }],
        ["write", { path: "notes/done.txt", content: "done\n" }],
        ["bash", { command: check }],
      ]);
      const tools = createSandboxTools(sandbox);
      const { text, steps } = await generateText({ model, tools, stopWhen: isStepCount(9), prompt: "repair it" });
      expect(steps.map((step: { toolResults: { output: string }[] }) => step.toolResults[0]?.output)).toEqual([
        ...["exit code 1\nred\n", 'echo "$(($1 - $2))"\n', "replaced 1 occurrence in sum.sh"],
        ...["wrote 5 bytes to notes/done.txt", "exit code 0\ngreen\n", undefined],
      ]);
      expect(text).toBe("exit code 0\ngreen\n");
      expect(await sandbox.readFile("notes/done.txt")).toBe("done\n");
      const [bash] = model.doGenerateCalls[0].tools as { name: string; inputSchema: object }[];
      expect(bash).toMatchObject({
        name: "bash",
        inputSchema: { type: "object", required: ["command"], additionalProperties: false },
      });
    });

    test("gets what it did wrong as text, and refuses wrong input", async () => {
      const sandbox = await open({ paths: "workdir" });
      await sandbox.writeFile("twice", "a a\n");
      const tools = createSandboxTools(sandbox, { timeout: 2000, maxOutput: 200 });
      const call = (name: keyof typeof tools, input: object) => tools[name].execute(input as never, {});
      expect(await call("read", { path: "missing" })).toBe("not_found: missing does not exist");
      expect(await call("read", { path: "/etc/passwd" })).toMatch(/^path_confinement: /);
      expect(await call("edit", { path: "twice", old: "b", new: "c" })).toMatch(/^not_found: /);
      expect(await call("edit", { path: "twice", old: "a", new: "$&" })).toMatch(/^conflict: .* 2 times\nhint: /);
      expect(await call("edit", { path: "twice", old: "a", new: "$&", all: true })).toMatch(/^replaced 2 /);
      expect(await sandbox.readFile("twice")).toBe("$& $&\n");
      expect(await call("bash", { command: 7 })).toMatch(/^invalid_argument: .*input\.command/);
      expect(await call("bash", { command: "echo begun; sleep 1000" })).toMatch(/^exit code 137\nbegun\n\[killed at /);
      expect(await call("bash", { command: "seq 100000" })).toMatch(
        /^exit code 0\n1\n[\s\S]*bytes left out[\s\S]*100000\n$/,
      );
      await sandbox.writeFile("long", Array.from({ length: 900 }, (_, at) => `${at + 1}\n`).join(""));
      expect(await call("read", { path: "long", start_line: 10, max_lines: 2 })).toBe(
        "10\n11\n[lines 10 to 11 of 900]",
      );
      expect(await call("read", { path: "long" })).toMatch(/^1\n2\n[\s\S]*\n\[lines 1 to 69 of 900\]$/);
      expect(tools.bash.inputSchema["~standard"].validate({ comand: "x" })).toMatchObject({
        issues: [{ message: expect.stringContaining("command") as string }, {}],
      });
    });

    test("is aborted: the call rejects, and nothing of it runs on", async () => {
      const sandbox = await open();
      const aborting = new AbortController();
      const model = scripted([["bash", { command: HEARTBEAT }]]);
      const call = { model, tools: createSandboxTools(sandbox), prompt: "wait", abortSignal: aborting.signal };
      const running = generateText({ ...call, stopWhen: isStepCount(3) });
      await expect.poll(() => beats(sandbox)).toBe(true);
      aborting.abort(new Error("enough"));
      await expect(running).rejects.toThrow();
      await expect.poll(() => isStill(sandbox)).toBe(true);
    });

    test("hands its sandbox to tools of the user's", async () => {
      const experimental_sandbox = createSandboxSession(await open());
      const count = tool({
        description: "counts",
        inputSchema: createSandboxTools(await open()).bash.inputSchema,
        execute: async (
          { command }: { command: string },
          given: { experimental_sandbox: typeof experimental_sandbox },
        ) => (await given.experimental_sandbox.run({ command })).stdout,
      });
      const model = scripted([["count", { command: "seq 3 | wc -l" }]]);
      const call = { model, tools: { count }, prompt: "count", experimental_sandbox };
      const { text } = await generateText({ ...call, stopWhen: isStepCount(3) });
      expect(text.trim()).toBe("3");
    });
  });

  describe("a harness provider", () => {
    test("resumes a session by its id, and destroys it", async () => {
      const provider = createSandboxProvider(options);
      expect(provider).toMatchObject({ specificationVersion: "harness-sandbox-v1", providerId: "glovebox" });
      const sessionId = "Sitzung Nr. 1/ü";
      const first = await provider.createSession({ sessionId });
      await first.run({ command: 'echo here > kept; echo home > "$HOME/kept"' });
      expect(first.defaultWorkingDirectory).toBe("/workspace");
      expect("stop" in first.restricted()).toBe(false);
      await first.stop();
      await first.stop();
      const again = createSandboxProvider(options);
      const second = await again.resumeSession({ sessionId });
      expect(second.id).toBe(first.id);
      expect((await second.run({ command: 'cat kept "$HOME/kept"' })).stdout).toBe("here\nhome\n");
      await second.stop();
      await second.destroy();
      await second.destroy();
      await expect(again.resumeSession({ sessionId })).rejects.toMatchObject({ code: "not_found" });
      expect(await listSandboxes()).toEqual([]);
    });

    test("prepares an identity once, and starts later sessions from it", async () => {
      const provider = createSandboxProvider(options);
      let prepared = 0;
      const request = {
        identity: "recipe 1",
        async onFirstCreate(session: { run(call: { command: string }): Promise<unknown> }) {
          prepared += 1;
          await session.run({ command: "echo ready > prepared" });
        },
      };
      const sessions = await Promise.all([provider.createSession(request), provider.createSession(request)]);
      sessions.push(await createSandboxProvider(options).createSession({ ...request, sessionId: "third" }));
      for (const session of sessions) {
        expect(await session.readTextFile({ path: "prepared" })).toBe("ready\n");
        expect(session.defaultWorkingDirectory).toBe("/workspace");
        await session.destroy();
      }
      expect(prepared).toBe(1);
      const other = {
        ...request,
        identity: "recipe 2",
        onFirstCreate: async () => Promise.reject(new Error("broken")),
      };
      await expect(provider.createSession(other)).rejects.toThrow("broken");
      const snapshots = await listSnapshots();
      expect(snapshots).toHaveLength(1);
      for (const { id } of snapshots) await deleteSnapshot(id);
    });

    test("reaches a server inside, and says what it can't do", async () => {
      const session = await createSandboxProvider({ ...options, publish: [8080] }).createSession();
      expect(session.ports).toEqual([8080]);
      const server = await session.spawn({ command: SERVERS[name] ?? "" });
      await expect.poll(async () => await ask((await session.getPortEndpoint({ port: 8080 })).url)).toBe("hello");
      expect(await session.getPortUrl({ port: 8080, protocol: "ws" })).toMatch(/^ws:\/\/127\.0\.0\.1:/);
      const asked = session.getPortEndpoint({ port: 8080, protocol: "https" });
      await expect(asked).rejects.toBeInstanceOf(HarnessCapabilityUnsupportedError);
      await server.kill();
      await session.setNetworkPolicy?.({ mode: "custom", allowedHosts: ["example.invalid"] });
      await session.setNetworkPolicy?.({ mode: "deny-all" });
      for (const policy of [{ mode: "allow-all" }, { mode: "custom", allowedCIDRs: ["10.0.0.0/8"] }] as const) {
        const refused = session.setNetworkPolicy?.(policy);
        await expect(refused).rejects.toSatisfy(HarnessCapabilityUnsupportedError.isInstance);
      }
      await session.stop();
    });

    test("leaves a sandbox that it was given open", async () => {
      const sandbox = await open();
      const session = await createSandboxProvider({ sandbox }).createSession({ sessionId: "x" });
      await session.stop();
      await session.destroy();
      expect((await sandbox.exec({ argv: ["true"] })).exitCode).toBe(0);
    });
  });
});

/** A server on port 8080 that says hello, with what each backend has. */
const SERVERS: Readonly<Record<string, string>> = {
  local: `exec node -e 'require("node:http").createServer((_, answer) => answer.end("hello")).listen(8080, "127.0.0.1")'`,
  docker: "mkdir www; printf hello > www/index.html; exec httpd -f -p 8080 -h www",
};

async function ask(url: string): Promise<string> {
  return await fetch(url).then(
    async (answer) => await answer.text(),
    (error: Error) => error.message,
  );
}

describe("credentials that are missing", () => {
  test("are the harness's own error", async () => {
    const before = process.env["DAYTONA_API_KEY"];
    delete process.env["DAYTONA_API_KEY"];
    try {
      const opening = createSandboxProvider({ backend: "daytona" }).createSession();
      await expect(opening).rejects.toBeInstanceOf(HarnessSandboxAuthenticationError);
    } finally {
      if (before !== undefined) process.env["DAYTONA_API_KEY"] = before;
    }
  });
});

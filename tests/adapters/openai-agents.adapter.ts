import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { RunState, run, setTracingDisabled, tool, UserError } from "@openai/agents-core";
import {
  Manifest,
  SandboxAgent,
  SandboxApplyPatchFileNotFoundError,
  SandboxConfigurationError,
  SandboxSnapshotNotRestorableError,
  SandboxUnsupportedFeatureError,
} from "@openai/agents-core/sandbox";
import { assistantMessage, functionCall, ScriptedModel } from "@openai/agents-core/testing";
import { beforeAll, describe, expect, test } from "vitest";
import {
  GloveboxSandboxClient,
  type GloveboxSandboxClientOptions,
  type GloveboxSandboxSession,
} from "../../src/adapters/openai-agents.js";
import { listSandboxes, listSnapshots, openSandbox } from "../../src/sandbox.js";
import { createScratch } from "../support/scratch.js";
import { onEachBackend } from "./backends.js";

const PNG = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==",
  "base64",
);
const SLEEPERS = "for f in /proc/[0-9]*/cmdline; do tr '\\0' ' ' < $f; echo; done";

beforeAll(() => setTracingDisabled(true));

/** A model that makes these calls, one a turn, and then says `done`. */
function scripted(calls: readonly (readonly [name: string, input: object])[]): ScriptedModel {
  const turns = calls.map(([name, input], at) => [functionCall(name, input, { callId: `call-${at}` })]);
  return new ScriptedModel([...turns, [assistantMessage("done")]]);
}

/** What the tools returned, as the model saw it. */
function answers(model: ScriptedModel): string[] {
  const { input = [] } = model.lastCall?.request ?? {};
  const items = input as { type?: string; output?: unknown }[];
  return items.flatMap(({ type, output }) => (type === "function_call_result" ? [JSON.stringify(output)] : []));
}

onEachBackend(({ name, options }) => {
  const clientOf = (more: GloveboxSandboxClientOptions = {}): GloveboxSandboxClient =>
    new GloveboxSandboxClient({ ...options, ...more });

  /** A session that is closed when the test ends. */
  async function open(
    manifest = new Manifest(),
    more: GloveboxSandboxClientOptions = {},
  ): Promise<GloveboxSandboxSession & AsyncDisposable> {
    const session = await clientOf(more).create(manifest);
    return Object.assign(session, { [Symbol.asyncDispose]: async () => await session.close() });
  }

  describe("a manifest", () => {
    test("makes files, directories, copies and variables at its root", async () => {
      await using session = await open(
        new Manifest({
          root: "/project",
          environment: { GREETING: "hello", KEY: { value: "hidden", ephemeral: true } },
          entries: {
            "a.txt": { type: "file", content: "text" },
            "run.sh": { type: "file", content: Buffer.from("echo ran\n"), permissions: "-rwx------" },
            deep: { type: "dir", children: { er: { type: "dir", children: { b: { type: "file", content: "b" } } } } },
            copied: { type: "local_dir", src: "contracts" },
            "one.json": { type: "local_file", src: "knip.json" },
          },
        }),
      );
      const { stdout } = await session.exec({
        cmd: "pwd; cat a.txt deep/er/b; echo; ./run.sh; stat -c %a run.sh; ls copied | head -1; echo $GREETING $KEY",
      });
      expect(stdout).toBe("/project\ntextb\nran\n700\nbackend.ts\nhello hidden\n");
      expect(await session.pathExists("one.json")).toBe(true);
      await session.materializeEntry({
        path: "later",
        entry: { type: "dir", children: { c: { type: "file", content: "c" } } },
      });
      await session.applyManifest(
        new Manifest({
          root: "/project",
          entries: { d: { type: "file", content: "d" } },
          environment: { MORE: "yes" },
        }),
      );
      expect((await session.exec({ cmd: "cat later/c d; echo $MORE" })).stdout).toBe("cdyes\n");
      expect(Object.keys(session.state.manifest.entries)).toContain("later");
    });

    test("may not read what is outside of the current directory, nor through a link", async () => {
      const scratch = createScratch();
      const given = join(scratch.path, "given");
      mkdirSync(join(given, "source"), { recursive: true });
      writeFileSync(join(given, "source", "file"), "granted");
      symlinkSync("/etc/passwd", join(given, "link"));
      const entry = (src: string) => ({ in: { type: "local_dir" as const, src } });
      await expect(open(new Manifest({ entries: entry(given) }))).rejects.toThrow(/must stay within/);
      const grants = [{ path: "/granted", hostPath: given, readOnly: true }];
      if (name === "docker") {
        const refused = open(new Manifest({ extraPathGrants: grants }));
        await expect(refused).rejects.toBeInstanceOf(SandboxUnsupportedFeatureError);
        return scratch.remove();
      }
      await expect(open(new Manifest({ entries: entry(given), extraPathGrants: grants }))).rejects.toThrow(
        /symbolic link/,
      );
      await using session = await open(
        new Manifest({ entries: entry(join(given, "source")), extraPathGrants: grants }),
      );
      const { stdout, stderr } = await session.exec({ cmd: "cat in/file /granted/source/file; echo x > /granted/new" });
      expect(stdout).toBe("grantedgranted");
      expect(stderr).toMatch(/Read-only|denied/);
      expect(Buffer.from(await session.readFile({ path: "/granted/source/file" })).toString()).toBe("granted");
      await expect(session.readFile({ path: "/etc/passwd" })).rejects.toThrow(/escapes the workspace root/);
      scratch.remove();
    });

    test.for([
      [{ users: ["me"] }, "manifest users"],
      [{ groups: [{ name: "us" }] }, "manifest groups"],
      [{ entries: { data: { type: "s3_mount", bucket: "b" } } }, "mounts of the type s3_mount"],
    ] as const)("with %j is refused before anything is made", async ([init, what]) => {
      const refused = clientOf().create(new Manifest(init as never));
      await expect(refused).rejects.toBeInstanceOf(SandboxUnsupportedFeatureError);
      await expect(refused).rejects.toThrow(what);
      expect(await listSandboxes()).toEqual([]);
    });

    test("that fails half-way leaves no sandbox", async () => {
      const entries = { a: { type: "local_file" as const, src: "no-such-file" } };
      await expect(clientOf().create(new Manifest({ entries }))).rejects.toThrow(/can't be read/);
      expect(await listSandboxes()).toEqual([]);
    });
  });

  describe("a command", () => {
    test("that goes on is read and written to by its number", async () => {
      await using session = await open();
      const first = await session.exec({ cmd: "echo begun; read line; echo got $line; exit 3", yieldTimeMs: 1500 });
      expect(first).toMatchObject({ output: "begun\n", stdout: "begun\n", stderr: "", sessionId: 1 });
      expect(first.exitCode).toBeUndefined();
      const rest = await session.writeStdin({ sessionId: 1, chars: "ünïcode\n", yieldTimeMs: 30_000 });
      expect(rest).toMatch(/Process exited with code 3\nOutput:\ngot ünïcode\n$/);
      expect(await session.writeStdin({ sessionId: 1 })).toContain("session not found: 1");
    });

    test("is interrupted by Ctrl-C, and everything ends with the session", async () => {
      const session = await open();
      await session.exec({ cmd: "exec sleep 1000", yieldTimeMs: 0 });
      expect(await session.writeStdin({ sessionId: 1, chars: "\u0003", yieldTimeMs: 30_000 })).toContain(
        "exited with code 130",
      );
      await session.exec({ cmd: "sleep 1000 & sleep 1000", yieldTimeMs: 0 });
      await session.stop();
      expect((await session.exec({ cmd: SLEEPERS })).output).not.toContain("sleep 1000");
      await session.close();
      await session.delete();
      expect(await session.running()).toBe(false);
      expect(await listSandboxes()).toEqual([]);
    });

    test("can have a terminal", async () => {
      await using session = await open();
      expect(session.supportsPty()).toBe(true);
      const shell = await session.exec({
        cmd: "tty; stty size; read line; echo got $line",
        tty: true,
        yieldTimeMs: 1500,
      });
      expect(shell.output).toMatch(/^\/dev\/pts\/\d+\r\n24 80\r\n/);
      expect(await session.writeStdin({ sessionId: 1, chars: "it\n", yieldTimeMs: 30_000 })).toContain("got it");
    });

    test("whose output is long is cut as the SDK does it", async () => {
      await using session = await open();
      const text = await session.execCommand({ cmd: "seq 1 100000", maxOutputTokens: 50 });
      expect(text).toMatch(
        /Process exited with code 0\nOriginal token count: \d+\nOutput:\nTotal output lines: 100001\n\n1\n2\n/,
      );
      expect(text.length).toBeLessThan(500);
      const { stdout } = await session.exec({ cmd: "head -c 3000000 /dev/zero | tr '\\0' x" });
      expect(stdout).toMatch(/^\[\.\.\.\d+ characters truncated from process output\.\.\.\]\nx+$/);
    });

    test("stays within the workspace, and asks for no user that can't be had", async () => {
      await using session = await open();
      await expect(session.exec({ cmd: "pwd", workdir: "/etc" })).rejects.toThrow(/escapes the workspace root/);
      await expect(session.readFile({ path: "x", runAs: "me" })).rejects.toBeInstanceOf(SandboxUnsupportedFeatureError);
      if (!session.sandbox.capabilities.user) {
        await expect(session.exec({ cmd: "id", runAs: "me" })).rejects.toBeInstanceOf(SandboxUnsupportedFeatureError);
      }
    });
  });

  describe("files", () => {
    test("are edited by diffs", async () => {
      await using session = await open(new Manifest({ entries: { "a.txt": { type: "file", content: "one\ntwo\n" } } }));
      const editor = session.createEditor();
      await editor.createFile({ type: "create_file", path: "new/b.txt", diff: "+hello\n+world\n" });
      await session.exec({ cmd: "chmod 750 a.txt" });
      await editor.updateFile({
        type: "update_file",
        path: "a.txt",
        diff: "@@\n one\n-two\n+three\n",
        moveTo: "moved/c.txt",
      });
      expect((await session.exec({ cmd: "cat new/b.txt moved/c.txt; ls" })).stdout).toBe(
        "hello\nworldone\nthree\nmoved\nnew\n",
      );
      expect((await session.exec({ cmd: "stat -c %a moved/c.txt" })).stdout).toBe("750\n");
      await expect(editor.createFile({ type: "create_file", path: "new/b.txt", diff: "+x\n" })).rejects.toThrow(
        /already exists/,
      );
      await expect(editor.updateFile({ type: "update_file", path: "none", diff: "@@\n-a\n" })).rejects.toBeInstanceOf(
        SandboxApplyPatchFileNotFoundError,
      );
      await editor.deleteFile({ type: "delete_file", path: "new/b.txt" });
      expect(await session.pathExists("new/b.txt")).toBe(false);
      await expect(editor.deleteFile({ type: "delete_file", path: "../../etc/passwd" })).rejects.toThrow(/escape/);
    });

    test("are read, listed and shown as images", async () => {
      await using session = await open(
        new Manifest({ entries: { "dot.png": { type: "file", content: PNG }, sub: { type: "dir" } } }),
      );
      expect(await session.viewImage({ path: "dot.png" })).toMatchObject({
        type: "image",
        image: { mediaType: "image/png" },
      });
      await expect(session.viewImage({ path: "none.png" })).rejects.toThrow("Image file not found: none.png");
      await expect(session.viewImage({ path: "sub" })).rejects.toThrow("Image path is not a file: sub");
      expect(Buffer.from(await session.readFile({ path: "/workspace/dot.png", maxBytes: 4 }))).toEqual(
        PNG.subarray(0, 4),
      );
      expect(await session.listDir({ path: "." })).toEqual([
        { name: "dot.png", path: "dot.png", type: "file" },
        { name: "sub", path: "sub", type: "dir" },
      ]);
      expect([await session.directoryExists("sub"), await session.directoryExists("dot.png")]).toEqual([true, false]);
    });

    test("go out and in as an archive", async () => {
      const entries = {
        "a/b": { type: "file" as const, content: "b" },
        secret: { type: "file" as const, content: "s", ephemeral: true },
      };
      await using from = await open(new Manifest({ entries }));
      const archive = await from.persistWorkspace();
      await using to = await open();
      await to.hydrateWorkspace(archive);
      expect((await to.exec({ cmd: "cat a/b; ls" })).stdout).toBe("ba\n");
      await expect(to.hydrateWorkspace(archive, { archiveLimits: { maxInputBytes: 10 } })).rejects.toThrow(
        /exceeds limit/,
      );
    });
  });

  test("a server is reached by its exposed port", async () => {
    await using session = await open(new Manifest(), { exposedPorts: [8080] });
    const response = "printf 'HTTP/1.0 200 OK\\r\\n\\r\\nserved'";
    const serve = name === "docker" ? `nc -l -p 8080 -e sh -c "${response}"` : undefined;
    await session.exec({
      cmd: serve ?? 'node -e \'require("http").createServer((_, r) => r.end("served")).listen(8080)\'',
      yieldTimeMs: 0,
    });
    const { host, port } = await session.resolveExposedPort(8080);
    await session.sandbox.waitForPort(8080);
    if (serve === undefined) expect(await (await fetch(`http://${host}:${port}/`)).text()).toBe("served");
    expect(session.state.exposedPorts?.["8080"]).toMatchObject({ host, port, tls: false });
    await expect(session.resolveExposedPort(9090)).rejects.toBeInstanceOf(SandboxConfigurationError);
    await expect(session.resolveExposedPort(0)).rejects.toBeInstanceOf(UserError);
  });

  describe("the state", () => {
    test("of a session is stored without what is ephemeral, and resumed from its files", async () => {
      const client = clientOf();
      const session = await client.create(
        new Manifest({
          environment: { KEPT: "kept", KEY: { value: "hidden-value", ephemeral: true } },
          entries: { secret: { type: "file", content: "hidden-content", ephemeral: true } },
        }),
      );
      await session.exec({ cmd: "echo work > done" });
      const stored = JSON.stringify(await client.serializeSessionState(session.state));
      expect(stored).not.toMatch(/hidden/);
      await session.close();
      expect(await listSandboxes()).toEqual([]);

      const state = await clientOf().deserializeSessionState(JSON.parse(stored));
      const resumed = await client.resume(state);
      expect(resumed.state.sandboxId).not.toBe(session.state.sandboxId);
      expect((await resumed.exec({ cmd: "ls; cat done; echo $KEPT $KEY" })).stdout).toBe("done\nwork\nkept\n");
      await client.delete(resumed.state);
      expect([await listSandboxes(), await listSnapshots()]).toEqual([[], []]);
      await expect(client.resume({ ...state, snapshot: null })).rejects.toBeInstanceOf(
        SandboxSnapshotNotRestorableError,
      );
    });

    test("of a sandbox that is kept leads back to it", async () => {
      const client = clientOf({ keep: true });
      const session = await client.create();
      await session.exec({ cmd: "echo work > done" });
      const stored = await client.serializeSessionState(session.state, { reuseLiveSession: true });
      await session.close();
      const resumed = await client.resume(await client.deserializeSessionState(stored));
      expect(resumed.state.sandboxId).toBe(session.state.sandboxId);
      expect((await resumed.exec({ cmd: "cat done" })).stdout).toBe("work\n");
      await client.delete(resumed.state);
      expect([await listSandboxes(), await listSnapshots()]).toEqual([[], []]);
    });

    test("opens no sandbox that is not this adapter's", async () => {
      await using other = await openSandbox(options);
      const client = clientOf();
      const state = { manifest: new Manifest(), environment: {}, configuredExposedPorts: [], sandboxId: other.id };
      await expect(client.resume(state)).rejects.toBeInstanceOf(SandboxSnapshotNotRestorableError);
      await client.delete(state);
      expect((await other.shell("echo alive")).stdout).toBe("alive\n");
    });
  });

  describe("an agent", () => {
    const manifest = new Manifest({
      entries: {
        "sum.sh": { type: "file", content: "echo $(($1 - $2))\n" },
        "test.sh": { type: "file", content: '[ "$(sh sum.sh 2 3)" = 5 ] && echo green || { echo red; exit 1; }\n' },
      },
    });
    const diff = "@@\n-echo $(($1 - $2))\n+echo $(($1 + $2))\n";
    const patch = {
      ...{ type: "apply_patch_call", callId: "patch", status: "completed" },
      operation: { type: "update_file", path: "sum.sh", diff },
    };

    test("edits a file, runs a test, and leaves nothing behind", async () => {
      const call = (callId: string, input: object): object => functionCall("exec_command", input, { callId });
      const model = new ScriptedModel([
        [call("red", { cmd: "sh test.sh" })],
        [patch],
        [call("green", { cmd: "sh test.sh" })],
        [call("long", { cmd: "sleep 1000", yield_time_ms: 100 })],
        [assistantMessage("done")],
      ]);
      const agent = new SandboxAgent({ name: "fixer", model, defaultManifest: manifest });
      const { finalOutput } = await run(agent, "The test is red.", { sandbox: { client: clientOf() } });
      expect(finalOutput).toBe("done");
      const [red, green, running] = answers(model);
      expect(red).toMatch(/exited with code 1.*red/);
      expect(green).toMatch(/exited with code 0.*green/);
      expect(running).toContain("Process running with session ID 1");
      expect([await listSandboxes(), await listSnapshots()]).toEqual([[], []]);
    });

    test("that is aborted ends its commands with its sandbox", async () => {
      const aborting = new AbortController();
      const model = scripted([["exec_command", { cmd: "echo begun; sleep 1000", yield_time_ms: 5000 }]]);
      const agent = new SandboxAgent({ name: "fixer", model, defaultManifest: manifest });
      const running = run(agent, "Go.", { sandbox: { client: clientOf() }, signal: aborting.signal });
      await expect.poll(async () => (await listSandboxes()).length).toBe(1);
      setTimeout(() => aborting.abort(), 1000);
      await expect(running).rejects.toThrow();
      await expect.poll(async () => await listSandboxes()).toEqual([]);
    });

    test("that waits for an approval is resumed in the sandbox that it had", async () => {
      const ask = tool({
        name: "ask",
        description: "Asks.",
        parameters: { type: "object", properties: {}, required: [], additionalProperties: false } as never,
        strict: false as never,
        needsApproval: true,
        execute: async () => "yes",
      });
      const model = scripted([
        ["exec_command", { cmd: "echo work > done" }],
        ["ask", {}],
        ["exec_command", { cmd: "cat done" }],
      ]);
      const agent = new SandboxAgent({ name: "fixer", model, tools: [ask], defaultManifest: manifest });
      const sandbox = { client: clientOf() };
      const interrupted = await run(agent, "Go.", { sandbox });
      expect(interrupted.interruptions).toHaveLength(1);
      const state = await RunState.fromString(agent, interrupted.state.toString());
      for (const item of state.getInterruptions()) state.approve(item);
      const { finalOutput } = await run(agent, state, { sandbox });
      expect(finalOutput).toBe("done");
      expect(answers(model).at(-1)).toContain("work");
      expect(await listSandboxes()).toEqual([]);
    });

    test("leaves files from which its run can go on, if asked to", async () => {
      const client = clientOf({ persistence: "snapshot" });
      const model = scripted([["exec_command", { cmd: "echo work > done" }]]);
      const agent = new SandboxAgent({ name: "fixer", model, defaultManifest: manifest });
      const { state } = await run(agent, "Go.", { sandbox: { client } });
      const [snapshot] = await listSnapshots();
      const stored = state.toString();
      expect(stored).toContain(snapshot?.id);
      expect(await listSandboxes()).toEqual([]);
      const resumed = await client.resume(await client.deserializeSessionState(providerState(stored)));
      expect((await resumed.exec({ cmd: "cat done sum.sh" })).stdout).toBe("work\necho $(($1 - $2))\n");
      await client.delete(resumed.state);
      expect([await listSandboxes(), await listSnapshots()]).toEqual([[], []]);
    });
  });
});

/** What the SDK has stored of the sandbox, as it gives it to the client. */
function providerState(stored: string): Record<string, unknown> {
  const { sandbox } = JSON.parse(stored) as { sandbox: { sessionState: Record<string, Record<string, unknown>> } };
  const { providerState: own, manifest, snapshot } = sandbox.sessionState;
  return { ...own, manifest, snapshot };
}

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createMcpServer, type McpServer } from "../../src/mcp.js";
import { connectTo, ERAS, fieldsOf, type TestClient, textOf } from "../support/mcp/client.js";
import { processesWith } from "../support/processes/host-processes.js";
import { createScratch, type Scratch } from "../support/scratch.js";

let scratch: Scratch;
beforeAll(() => {
  scratch = createScratch();
});
afterAll(() => scratch.remove());

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

describe.each(ERAS)("the seven tools, era %s", (year, era) => {
  let server: McpServer;
  let client: TestClient;
  beforeAll(async () => {
    server = await createMcpServer();
    client = await connectTo(server, era);
  });
  afterAll(async () => {
    await client[Symbol.asyncDispose]();
    await server.close();
  });

  it("are seven, in a fixed order, with all hints and no output schema for text", async () => {
    const { tools } = await client.client.listTools();
    expect(tools.map(({ name }) => name)).toEqual([
      ...["exec", "process_read", "process_write", "process_kill", "file_read", "file_write", "file_edit"],
    ]);
    for (const { name, annotations, description, inputSchema, outputSchema } of tools) {
      expect([name, Object.values(annotations ?? {}).length]).toEqual([name, 4]);
      expect(description?.length).toBeGreaterThan(20);
      expect(inputSchema["additionalProperties"]).toBe(false);
      expect(outputSchema === undefined).toBe(["exec", "process_read", "process_write", "file_read"].includes(name));
    }
    expect(tools[0]?.annotations).toMatchObject({ readOnlyHint: false, destructiveHint: true, openWorldHint: false });
  });

  it("run a command, whose exit code is a result", async () => {
    const result = await client.call("exec", { command: "pwd; echo oops >&2; exit 3" });
    expect(textOf(result)).toBe("exit code 3\n/workspace\n--- stderr\noops");
    expect(result.isError).toBeUndefined();
    expect(result.structuredContent).toBeUndefined();
    expect(fieldsOf(result)).toMatchObject({ exit_code: 3, stdout: "/workspace\n", stderr: "oops\n", running: false });
    expect(await client.text("exec", { argv: ["cat"], stdin: "by stdin" })).toBe("exit code 0\nby stdin");
    expect(await client.text("exec", { command: "echo $A $(pwd)", env: { A: "b" }, cwd: "/tmp" })).toBe(
      "exit code 0\nb /tmp",
    );
    expect(await client.text("exec", { command: "sleep 60", timeout_ms: 300 })).toBe(
      "timed out and was killed, exit code 137",
    );
  });

  it("leave a long command running, follow it, write to it and end it", async () => {
    const started = await client.call("exec", {
      command: "echo one; read line; echo got $line; sleep 600",
      interactive: true,
      yield_ms: 1_000,
    });
    const id = String(fieldsOf(started)["process_id"]);
    expect(textOf(started)).toBe(`still running, process_id ${id}\none`);
    expect(await client.text("process_read", { process_id: id })).toBe(
      `still running, process_id ${id}\nno new output`,
    );
    await expect.poll(() => client.text("process_write", { process_id: id, data: "two\n" })).toContain("got two");
    expect(await client.text("process_kill", { process_id: id })).toBe("killed by SIGKILL, exit code 137");
    expect(await client.text("process_read", { process_id: id })).toMatch(/^killed by SIGKILL, exit code 137\n/);
    expect(await client.text("process_read", { process_id: id, from_byte: 0 })).toContain("one\ngot two");
    expect(await client.failure("process_read", { process_id: id, from_byte: 100 })).toMatch(/^invalid_argument: /);
    expect(await client.failure("process_write", { process_id: id, data: "x" })).toMatch(
      /^conflict: .* has ended\nhint: /,
    );
    expect(await client.failure("process_read", { process_id: "p999999" })).toMatch(
      /^not_found: There is no process "p999999"[\s\S]*hint: /,
    );
  });

  it("wait for output or for the end", async () => {
    const started = await client.call("exec", { command: "sleep 1; echo late; exit 4", yield_ms: 0 });
    const id = String(fieldsOf(started)["process_id"]);
    let seen = "";
    await expect
      .poll(async () => {
        seen += await client.text("process_read", { process_id: id, wait_ms: 45_000 });
        return seen;
      })
      .toContain("exit code 4");
    expect(seen).toContain("late");
  });

  it("cut long output in the middle and page through the rest", async () => {
    const result = await client.call("exec", { command: "seq 1 30000" });
    const text = textOf(result);
    expect(Buffer.byteLength(text)).toBeLessThan(31_000);
    expect(text).toMatch(/^exit code 0\n1\n2\n/);
    expect(text).toMatch(/\n29999\n30000$/);
    const [, left, id, from] =
      /\[\.\.\. (\d+) bytes left out; process_read with process_id "(p\d+)", stream "stdout" and from_byte (\d+) shows them/.exec(
        text,
      ) ?? [];
    expect(Number(left)).toBeGreaterThan(100_000);
    let cursor = Number(from);
    let all = Buffer.from(await range(1, 30_000))
      .subarray(0, cursor)
      .toString();
    for (;;) {
      const page = await client.call("process_read", { process_id: id, stream: "stdout", from_byte: cursor });
      const { output, next_byte: next } = fieldsOf(page);
      all += String(output);
      if (next === cursor) break;
      cursor = Number(next);
    }
    expect(all).toBe(await range(1, 30_000));
  });

  it("leave no colours in the text", async () => {
    expect(await client.text("exec", { command: "printf '\\033[31mred\\033[0m\\r\\n'" })).toBe("exit code 0\nred");
  });

  it("kill the whole tree when the call is cancelled", async () => {
    const marker = `cancelled-${year}-${process.pid}`;
    const running = (): unknown[] => processesWith(marker);
    const stop = new AbortController();
    const command = `sh -c 'sleep 600; :' ${marker} & setsid sh -c 'sleep 600; :' ${marker} & sleep 600`;
    const call = client.call("exec", { command }, { signal: stop.signal });
    call.catch(() => undefined);
    await expect.poll(() => running().length).toBeGreaterThanOrEqual(2);
    stop.abort();
    await expect(call).rejects.toThrow();
    // Each command sees its own processes only, so this is asked from outside.
    await expect.poll(running).toEqual([]);
  });

  it("say that they go on, with the last line", async () => {
    const heard: { progress: number }[] = [];
    const onprogress = (each: { progress: number }): void => void heard.push(each);
    await client.call("exec", { command: "echo working" }, { onprogress });
    expect(heard[0]).toMatchObject({ progress: 0 });
    heard.length = 0;
    const stop = new AbortController();
    const call = client.call("exec", { command: "echo waiting; sleep 600" }, { onprogress, signal: stop.signal });
    call.catch(() => undefined);
    // The second comes after ten seconds.
    await expect.poll(() => heard).toMatchObject([{ progress: 0 }, { progress: 1, message: "waiting" }]);
    stop.abort();
    await expect(call).rejects.toThrow();
  });

  it("write, read and edit files, also outside the work directory", async () => {
    expect(await client.text("file_write", { path: "a/b.txt", content: "one\ntwo\nthree\n" })).toBe(
      "wrote 14 bytes to a/b.txt",
    );
    expect(await client.text("file_read", { path: "/workspace/a/b.txt" })).toBe("one\ntwo\nthree\n[3 lines]");
    expect(await client.text("file_read", { path: "a/b.txt", start_line: 2, max_lines: 1 })).toBe(
      "two\n[lines 2 to 2 of 3; start_line 3 continues]",
    );
    const edited = await client.call("file_edit", { path: "a/b.txt", old: "two", new: "2" });
    expect(textOf(edited)).toBe("--- a/b.txt\n+++ a/b.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n");
    expect(edited.structuredContent).toMatchObject({ replaced: 1, path: "a/b.txt" });
    expect(await client.failure("file_edit", { path: "a/b.txt", old: "absent", new: "" })).toMatch(
      /^not_found: old is not in a\/b\.txt/,
    );
    expect(await client.failure("file_edit", { path: "a/b.txt", old: "e", new: "" })).toMatch(
      /^conflict: old is 3 times in a\/b\.txt, not 1 \(lines 1, 3, 3\)/,
    );
    expect(await client.text("exec", { command: "cat a/b.txt" })).toBe("exit code 0\none\n2\nthree");
    await client.text("file_write", { path: "/tmp/x", content: "AAEC", encoding: "base64" });
    expect(await client.text("file_read", { path: "/tmp/x" })).toMatch(
      /^\/tmp\/x is a binary file \(application\/octet-stream\) of 3 bytes/,
    );
    expect(await client.failure("file_write", { path: "/tmp/x", content: "?", encoding: "base64" })).toMatch(
      /^invalid_argument: content is not base64/,
    );
    expect(await client.failure("file_read", { path: "/nothing/here" })).toMatch(
      /^not_found: There is no file \/nothing\/here/,
    );
    expect(await client.failure("file_read", { path: "/workspace" })).toMatch(/^not_regular_file: /);
    // The kernel's files have a size of 0.
    expect(await client.text("file_read", { path: "/proc/version" })).toMatch(/^Linux version /);
    await client.text("file_write", { path: "empty", content: "" });
    expect(await client.text("file_read", { path: "empty" })).toBe("[the file is empty]");
  });

  it("keep the mode of a file", async () => {
    await client.text("exec", { command: "printf '#!/bin/sh\\necho 1\\n' > run && chmod 750 run" });
    await client.text("file_edit", { path: "run", old: "echo 1", new: "echo 2" });
    expect(await client.text("exec", { command: "stat -c %a run; ./run" })).toBe("exit code 0\n750\n2");
    await client.text("file_write", { path: "run", content: "#!/bin/sh\necho 3\n" });
    expect(await client.text("exec", { command: "./run" })).toBe("exit code 0\n3");
  });

  it("lose no edit of two at the same time", async () => {
    await client.text("file_write", { path: "both", content: "a b\n" });
    await Promise.all([
      client.text("file_edit", { path: "both", old: "a", new: "1" }),
      client.text("file_edit", { path: "both", old: "b", new: "2" }),
    ]);
    expect(await client.text("exec", { command: "cat both" })).toBe("exit code 0\n1 2");
  });

  it("show an image as an image", async () => {
    await client.text("file_write", { path: "dot.png", content: PNG, encoding: "base64" });
    const { content, _meta } = await client.call("file_read", { path: "dot.png" });
    expect(content[1]).toEqual({ type: "image", data: PNG, mimeType: "image/png" });
    expect(JSON.stringify(_meta)).not.toContain(PNG);
  });

  it("refuse wrong arguments with a code, the name and a hint", async () => {
    expect(await client.failure("exec", {})).toMatch(/^invalid_argument: exec takes either command or argv\nhint: /);
    expect(await client.failure("exec", { command: "a", argv: ["b"] })).toMatch(/^invalid_argument: exec takes either/);
    expect(await client.failure("exec", { comand: "ls" })).toMatch(
      /^invalid_argument: Unknown option "comand"\nhint: did you mean "command"/,
    );
    expect(await client.failure("exec", { command: "ls", yield_ms: 60_000 })).toMatch(
      /^invalid_argument: Invalid yield_ms: .*45000/,
    );
    expect(await client.failure("exec", { command: "ls", cwd: "/no/such" })).toMatch(/^not_found: /);
    await expect(client.call("rm_rf", {})).rejects.toMatchObject({ code: -32602 });
  });
});

/** What `seq` prints. */
async function range(from: number, to: number): Promise<string> {
  return Array.from({ length: to - from + 1 }, (_, at) => `${from + at}\n`).join("");
}

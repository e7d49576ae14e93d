import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import type { Sandbox } from "../../../../src/sandbox/types.js";
import { listSandboxes } from "../../../../src/sandbox.js";
import { ownService } from "../../../support/daytona/service.js";

const input = /POST .*\/input/;

/** Counts how often a command has run, by what it leaves behind. */
async function runsOf(sandbox: Sandbox): Promise<number> {
  return (await sandbox.readFile("runs"))?.length ?? 0;
}

describe.concurrent("a command runs once, and its result is whole, when", () => {
  test.each([
    ["the request was lost before it was taken", [{ match: input, action: "reset" }]],
    ["the answer was lost after it was taken", [{ match: input, action: "reset-after" }]],
    ["a gateway says 502", [{ match: input, action: { status: 502 } }]],
    [
      "the service is too busy",
      [{ match: input, action: { status: 429, headers: { "Retry-After-authenticated": "0" } } }],
    ],
    [
      "all of it",
      [
        { match: input, action: "reset" },
        { match: input, action: { status: 503 } },
        { match: input, action: "reset-after" },
      ],
    ],
  ] as const)("%s", async (_what, faults) => {
    await using there = await ownService();
    await using sandbox = await there.open();
    there.service.habits.faults = faults.map((fault) => ({ ...fault }));
    const result = await sandbox.shell("printf x >> runs; echo out; echo err >&2; exit 7");
    expect(result).toMatchObject({ exitCode: 7, stdout: "out\n", stderr: "err\n" });
    expect(there.service.habits.faults).toEqual([]);
    expect(await runsOf(sandbox)).toBe(1);
  });

  test.each([
    ["politely", false],
    ["rudely", true],
  ])("the socket of the log closes early, %s, again and again", async (_how, followCutRudely) => {
    await using there = await ownService();
    await using sandbox = await there.open();
    Object.assign(there.service.habits, { followCutAfter: 30_000, followCutRudely });
    there.service.entry(`glovebox-${sandbox.id}`).processes.cutFollowers();
    const result = await sandbox.shell("printf x >> runs; seq 20000; sleep 0.3; seq 20000 >&2", { raw: true });
    expect([result.exitCode, result.bytes.stdout, result.bytes.stderr]).toEqual([0, 108_894, 108_894]);
    expect(await runsOf(sandbox)).toBe(1);
  });

  test("the guest takes no input for so long that it is checked", async () => {
    await using there = await ownService();
    await using sandbox = await there.open();
    const stopped = there.service.entry(`glovebox-${sandbox.id}`).machine.hostPath("/tmp/stopped");
    const find = "grep -lz '^serve-text$' /proc/[0-9]*/cmdline 2>/dev/null | tr -dc '0-9\\n' | sort -n | head -1";
    const script = `relay=$(${find}); sleep 0.3; kill -STOP $relay; touch /tmp/stopped; sleep 6; kill -CONT $relay`;
    await using _ = await sandbox.spawn({ argv: ["sh", "-c", script], stdin: "none" });
    let sent = 0;
    async function* stdin(): AsyncGenerator<Uint8Array> {
      // The request under way when the relay stops must be a large one.
      for (let more = 48; more > 0; more -= existsSync(stopped) ? 1 : 0) {
        sent += 64 << 10;
        yield Buffer.alloc(64 << 10, "x");
      }
    }
    const result = await sandbox.exec({ argv: ["wc", "-c"], stdin: stdin() });
    expect(result).toMatchObject({ exitCode: 0, stdout: `${sent}\n` });
  }, 60_000);

  test.each([3, 4])("frames of %i bytes make the SDK take marks for text", async (frameBytes) => {
    await using there = await ownService();
    await using sandbox = await there.open();
    there.service.habits.frameBytes = frameBytes;
    expect(await sandbox.shell("seq 300; exit 4")).toMatchObject({ exitCode: 4, bytes: { stdout: 1_092 } });
  });

  test("nobody can follow a log at all", async () => {
    await using there = await ownService();
    there.service.habits.refuseFollow = true;
    await using sandbox = await there.open();
    expect(await sandbox.shell("echo polled; exit 2")).toMatchObject({ exitCode: 2, stdout: "polled\n" });
  });

  test("input is echoed into the log", async () => {
    await using there = await ownService();
    there.service.habits.echoInput = true;
    await using sandbox = await there.open();
    expect((await sandbox.exec({ argv: ["cat"], stdin: "through\n" })).stdout).toBe("through\n");
  });

  test("it says nothing for long, and the log's reader lingers", async () => {
    await using there = await ownService();
    there.service.habits.lingerMs = 1_000;
    await using sandbox = await there.open();
    const result = await sandbox.shell("sleep 2.5; echo late");
    expect(result).toMatchObject({ exitCode: 0, stdout: "late\n" });
    expect(result.durationMs).toBeLessThan(20_000);
  });
});

describe.concurrent("what is lost is said to be lost, never an exit code", () => {
  test("a sandbox that was stopped under a command", async () => {
    await using there = await ownService();
    const sandbox = await there.open({ keep: true });
    const call = sandbox.shell("echo up; sleep 60");
    await sleep(300);
    const entry = there.service.entry(`glovebox-${sandbox.id}`);
    const { apiUrl, apiKey } = there.service;
    await fetch(`${apiUrl}/sandbox/${entry.id}/stop`, {
      method: "POST",
      headers: { Authorization: `Bearer ${apiKey}` },
    });
    await expect(call).rejects.toMatchObject({ code: "backend_lost", message: expect.stringContaining("stopped") });
    await expect(sandbox.writeFile("x", "y")).rejects.toMatchObject({ code: "backend_lost" });
    await sandbox.teardown();
    const again = await there.open({ id: sandbox.id, keep: false });
    await again.teardown();
  });

  test("a sandbox that was deleted under a command", async () => {
    await using there = await ownService();
    const sandbox = await there.open();
    const call = sandbox.shell("echo up; sleep 60");
    await sleep(300);
    const entry = there.service.entry(`glovebox-${sandbox.id}`);
    const { apiUrl, apiKey } = there.service;
    await fetch(`${apiUrl}/sandbox/${entry.id}`, { method: "DELETE", headers: { Authorization: `Bearer ${apiKey}` } });
    await expect(call).rejects.toMatchObject({ code: "backend_lost" });
    await expect(sandbox.exec({ argv: ["true"] })).rejects.toMatchObject({ code: "backend_lost" });
    await sandbox.teardown();
    expect((await listSandboxes()).map(({ id }) => id)).not.toContain(sandbox.id);
  });

  test("a guest that was killed", async () => {
    await using there = await ownService();
    await using sandbox = await there.open();
    const call = sandbox.shell("kill -9 -1");
    await expect(call).rejects.toMatchObject({ code: "backend_lost" });
  });

  test("an upload that the service refuses, and one that never arrives", async () => {
    await using there = await ownService();
    await using sandbox = await there.open();
    there.service.habits.faults = [
      { match: /bulk-upload/, action: { status: 403, body: { message: "denied", statusCode: 403 } } },
    ];
    await expect(sandbox.writeFile("x", "y")).rejects.toMatchObject({ code: "permission_denied" });
    there.service.habits.faults = [{ match: /bulk-upload/, action: { status: 200, body: { files: [] } } }];
    await expect(sandbox.writeFile("x", "y")).rejects.toMatchObject({
      code: "unavailable",
      message: expect.stringContaining("did not arrive"),
    });
    expect(await sandbox.readFile("x")).toBeNull();
  });

  test("a sandbox that is on its way to another state is unavailable, one that is done for is lost", async () => {
    await using there = await ownService();
    await using sandbox = await there.open();
    const entry = there.service.entry();
    entry.state = "archiving";
    await expect(sandbox.writeFile("x", "y")).rejects.toMatchObject({
      code: "unavailable",
      message: expect.stringContaining("archiving"),
    });
    entry.state = "archived";
    await expect(sandbox.writeFile("x", "y")).rejects.toMatchObject({ code: "backend_lost" });
    entry.state = "started";
    await sandbox.writeFile("x", "y");
  });

  test("a key that is not accepted any more is unauthenticated", async () => {
    await using there = await ownService();
    await using sandbox = await there.open();
    const action = { status: 401, body: { statusCode: 401, message: "This API key has expired" } };
    there.service.habits.faults = [{ match: /bulk-upload/, action }];
    await expect(sandbox.writeFile("x", "y")).rejects.toMatchObject({ code: "unauthenticated" });
  });
});

import { expect, test } from "vitest";
import { enforceableLimits } from "../../../../../src/sandbox/backends/local/limits.js";
import { createLocalSandbox } from "../../../../../src/sandbox/backends/local.js";
import { describeUnless } from "../../../../support/describe-unless.js";

const reason = enforceableLimits().includes("pids") ? undefined : "not run: no limits can be kept here";

describeUnless(reason, "limits of a local sandbox", {}, () => {
  test.each([
    [{ memory: (8 << 20) - 1 }, /limits\.memory: expected at least 8388608.*8388607/],
    [{ pids: 7 }, /limits\.pids: expected at least 8.*got 7/],
    [{ cpus: 0.009 }, /limits\.cpus: expected at least 0\.01, got 0\.009/],
    [{ pids: 4_194_305 }, /limits\.pids: expected at most 4194304, got 4194305/],
    [{ cpus: 1e26 }, /limits\.cpus: expected at most 1000000, got 1e\+26/],
  ])("that leave no room for a command, or that the kernel does not take, are refused: %j", async (limits, message) => {
    const call = createLocalSandbox({ limits });
    await expect(call).rejects.toMatchObject({ code: "invalid_argument" });
    await expect(call).rejects.toThrow(message);
  });

  test("that just do are enough for one", async () => {
    await using sandbox = await createLocalSandbox({ limits: { memory: 8 << 20, pids: 8 } });
    for (let n = 0; n < 100; n++) expect((await sandbox.exec({ argv: ["/bin/echo", "hi"] })).stdout).toBe("hi\n");
  });

  test("that are the most there can be are taken", async () => {
    const limits = { memory: Number.MAX_SAFE_INTEGER, pids: 4_194_304, cpus: 1_000_000 };
    await using sandbox = await createLocalSandbox({ limits });
    expect((await sandbox.exec({ argv: ["/bin/true"] })).exitCode).toBe(0);
  });

  test("are never an exit code: a command that could not be started is unavailable, and the next one runs", async () => {
    await using sandbox = await createLocalSandbox({ limits: { pids: 12 } });
    const first = await sandbox.spawn({ argv: ["/bin/sh", "-c", "echo up; exec /bin/sleep 3"] });
    // It has its process now; without, those that follow could take the last one.
    await first.stdout.getReader().read();
    const calls = Array.from({ length: 12 }, () => sandbox.exec({ argv: ["/bin/sleep", "2"] }));
    const outcomes = (await Promise.allSettled(calls)).map((each) =>
      each.status === "fulfilled" ? each.value.exitCode : (each.reason as { code: string }).code,
    );
    // On a busy machine all of them may be begun before one has the process that it needs: then none runs.
    expect(outcomes).toContain("unavailable");
    expect(outcomes.filter((each) => each !== 0 && each !== "unavailable")).toEqual([]);
    expect((await first.wait()).exitCode).toBe(0);
    expect((await sandbox.exec({ argv: ["/bin/true"] })).exitCode).toBe(0);
  });
});

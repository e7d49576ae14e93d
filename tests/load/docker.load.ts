import { describe, expect, test } from "vitest";
import { createDockerSandbox } from "../../src/sandbox/backends/docker.js";
import type { Sandbox, SandboxOptions } from "../../src/sandbox/types.js";
import { BUSYBOX, useEngine, whyNoDocker } from "../support/docker/engine.js";
import { dockerCensus } from "../support/docker/harness.js";
import { SET_UP_LIMIT } from "../support/run/set-up-limit.js";
import { expectInTime, timed, useLoad } from "./suite.js";

const reason = whyNoDocker(BUSYBOX);
if (reason !== undefined) test("containers under load", ({ skip }) => skip(reason));
else {
  const { use, quietly } = useLoad(async () => {
    await useEngine(BUSYBOX);
    await (await createDockerSandbox({ image: BUSYBOX })).teardown();
  }, SET_UP_LIMIT);
  const open = async (opts: SandboxOptions = {}): Promise<Sandbox> =>
    use(await createDockerSandbox({ image: BUSYBOX, ...opts }));
  /** What the engine has is gone when the engine is done with it. */
  const expectNothing = async (): Promise<void> => {
    await quietly(() => expect.poll(dockerCensus, { timeout: 30_000, interval: 200 }).toEqual([]));
  };
  const BUSY = "trap '' TERM; (while :; do :; done) & while :; do sleep 1; done";

  describe("a container", () => {
    test.each([500, 3_000])("is opened within %i ms", async (operationTimeout) => {
      const result = await timed(() => open({ operationTimeout }));
      expectInTime(operationTimeout, result);
      if (result.value !== undefined)
        expectInTime(operationTimeout, await timed(() => result.value?.teardown() as Promise<void>));
      await expectNothing();
    });

    test("is not opened when that is aborted after 300 ms", async () => {
      expectInTime(300, await timed(() => open({ signal: AbortSignal.timeout(300) })), ["aborted"]);
      await expectNothing();
    });

    test("ends a command at its timeout of 1 s, and one that is aborted", async () => {
      const sandbox = await quietly(() => open());
      const result = await timed(() => sandbox.shell(BUSY, { timeout: 1_000 }));
      expectInTime(1_000, result);
      expect(result.value).toMatchObject({ timedOut: true, exitCode: 137 });
      const aborted = await timed(() => sandbox.shell(BUSY, { signal: AbortSignal.timeout(500) }));
      expectInTime(500, aborted, ["aborted"]);
    });

    test("saves and restores its files, and is forked, within 1 s each", async () => {
      const sandbox = await quietly(() => open({ operationTimeout: 1_000 }));
      const saved = await timed(() => sandbox.snapshot());
      expectInTime(1_000, saved);
      if (saved.value !== undefined) expectInTime(1_000, await timed(() => sandbox.restore(saved.value as string)));
      expectInTime(1_000, await timed(async () => use(await sandbox.fork())));
    });

    test("is taken down within 1 s while something runs in it", async () => {
      const sandbox = await quietly(() => open({ operationTimeout: 1_000 }));
      const busy = sandbox.shell(BUSY).catch(() => undefined);
      expectInTime(1_000, await timed(() => sandbox.teardown()));
      await busy;
      await expectNothing();
    });
  });
}

import { expect, test } from "vitest";
import { engineOf } from "../../../../src/sandbox/backends/docker/engine/engines.js";
import { createNetwork } from "../../../../src/sandbox/backends/docker/engine/network.js";
import { sweepEngine } from "../../../../src/sandbox/backends/docker/sweep.js";
import { createDockerSandbox } from "../../../../src/sandbox/backends/docker.js";
import type { Sandbox } from "../../../../src/sandbox/types.js";
import { reap } from "../../../../src/sandbox.js";
import { BUSYBOX } from "../../../support/docker/engine.js";
import { dockerCensus } from "../../../support/docker/harness.js";
import { describeOwnEngine } from "../../../support/docker/own-engine.js";

const MIB = 1 << 20;

/** Waits until a command runs that would go on for a minute; gives what asks for its end. */
async function underWay(sandbox: Sandbox): Promise<() => Promise<unknown>> {
  let isUp = (): void => undefined;
  const up = new Promise<void>((resolve) => {
    isUp = resolve;
  });
  const call = sandbox.exec({ argv: ["sh", "-c", "echo up; sleep 60"], onStdout: () => isUp() });
  call.catch(() => undefined);
  await Promise.race([up, call]);
  return () => call;
}

describeOwnEngine(
  "when the engine fails",
  (engine) => {
    test("a container that somebody else removed is lost, not an exit code", async () => {
      const sandbox = await createDockerSandbox({ image: BUSYBOX });
      const call = await underWay(sandbox);
      await engineOf().call("DELETE", `/containers/glovebox-${sandbox.id}`, { query: { force: true } });
      await expect(call()).rejects.toMatchObject({ code: "backend_lost" });
      await expect(sandbox.exec({ argv: ["true"] })).rejects.toMatchObject({ code: "backend_lost" });
      await expect(sandbox.readFile("x")).rejects.toMatchObject({ code: "backend_lost" });
      await sandbox.teardown();
      expect(await dockerCensus()).toEqual([]);
    });

    test("a full disk is no_space, and the sandbox goes on", async () => {
      const sandbox = await createDockerSandbox({ image: BUSYBOX });
      const filled = await sandbox.shell("dd if=/dev/zero of=big bs=1M count=200");
      expect([filled.exitCode, filled.stderr]).toEqual([1, expect.stringContaining("No space left on device")]);
      await expect(sandbox.writeFile("more", new Uint8Array(4 * MIB))).rejects.toMatchObject({ code: "no_space" });
      await expect(sandbox.snapshot()).rejects.toMatchObject({ code: "no_space" });
      await sandbox.deleteFile("big");
      await sandbox.writeFile("more", "fits");
      expect(await sandbox.readFile("more")).toBe("fits");
      await sandbox.teardown();
      expect(await dockerCensus()).toEqual([]);
    });

    test("an engine that is killed while it removes networks starts again", async () => {
      const names = Array.from({ length: 8 }, (_, n) => `glovebox-fault-${n}`);
      const remove = (name: string): Promise<unknown> =>
        engineOf()
          .call("DELETE", `/networks/${name}`)
          .catch(({ code }: { code: string }) => code);
      for (const name of names) await createNetwork(engineOf(), { name, internal: false, members: 1, labels: {} });
      const removals = names.map(remove);
      await Promise.race(removals);
      const { back } = await engine.kill();
      expect(await Promise.all(removals)).toContain("backend_lost");
      await back;
      await Promise.all(names.map(remove));
      const listed = await engineOf().call<{ Name: string }[]>("GET", "/networks");
      expect(listed.map(({ Name }) => Name).filter((name) => names.includes(name))).toEqual([]);
    });

    test("an engine that stands still makes calls wait no longer than they may", async () => {
      const sandbox = await createDockerSandbox({ image: BUSYBOX, operationTimeout: 3_000 });
      await engine.stopped(async () => {
        const exec = await sandbox.exec({ argv: ["true"], timeout: 1_000 }).then(
          ({ timedOut }) => (timedOut ? "timed out" : "a result"),
          ({ code }: { code: string }) => code,
        );
        expect(["timed out", "unavailable", "backend_lost"]).toContain(exec);
        await expect(sandbox.readFile("x")).rejects.toMatchObject({ code: "unavailable" });
        const opening = createDockerSandbox({ image: BUSYBOX, signal: AbortSignal.timeout(500) });
        await expect(opening).rejects.toMatchObject({ code: "aborted" });
      });
      // Three seconds may not be enough for it: what is left is taken away behind it.
      await sandbox.teardown();
      await expect.poll(dockerCensus).toEqual([]);
    });

    test("a container that somebody paused makes no call wait longer than its own time and two seconds", async () => {
      const sandbox = await createDockerSandbox({ image: BUSYBOX, operationTimeout: 3_000 });
      await sandbox.writeFile("x", "there");
      const took = async (work: () => Promise<unknown>): Promise<[string, boolean]> => {
        const started = performance.now();
        const code = await work().then(
          () => "a result",
          (error: { code: string }) => error.code,
        );
        return [code, performance.now() - started < 5_000];
      };
      const running = await underWay(sandbox);
      const container = `/containers/glovebox-${sandbox.id}`;
      await engineOf().call("POST", `${container}/pause`);
      const calls = await Promise.all([
        took(() => sandbox.exec({ argv: ["true"] })),
        took(() => sandbox.exec({ argv: ["true"], timeout: 1_000 })),
        took(() => sandbox.readFile("x")),
        took(running),
      ]);
      expect(calls).toEqual([
        ["backend_lost", true],
        ["backend_lost", true],
        ["unavailable", true],
        ["backend_lost", true],
      ]);
      await engineOf().call("POST", `${container}/unpause`);
      expect(await sandbox.readFile("x")).toBe("there");
      expect((await sandbox.exec({ argv: ["echo", "again"] })).stdout).toBe("again\n");
      await sandbox.teardown();
      // Teardown has a deadline, too: on a busy machine the removal may go on after it.
      await expect.poll(dockerCensus).toEqual([]);
    });

    test("an engine that is killed in the middle loses what ran; the next sandbox works", async () => {
      const sandbox = await createDockerSandbox({ image: BUSYBOX });
      const call = await underWay(sandbox);
      const { back } = await engine.kill();
      await expect(call()).rejects.toMatchObject({ code: "backend_lost" });
      await expect(createDockerSandbox({ image: BUSYBOX })).rejects.toMatchObject({
        code: expect.stringMatching(/^(unavailable|backend_lost)$/),
      });
      await back;
      await sandbox.teardown();
      // On a busy machine an engine that has just started may not answer in time: what is left then, the next start removes.
      const left = async (): Promise<unknown> => {
        await reap();
        await sweepEngine();
        return await dockerCensus();
      };
      await expect.poll(left).toEqual([]);
      await using next = await createDockerSandbox({ image: BUSYBOX });
      expect((await next.exec({ argv: ["echo", "again"] })).stdout).toBe("again\n");
    });
  },
  96 * MIB,
);

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startEngine, stopEngine, type TestEngine, waitForEngine } from "../scripts/docker-engine.mjs";
import { ensureImage } from "../scripts/docker-images.mjs";
import { engineOf } from "../src/sandbox/docker/engines.js";
import { sweepEngine } from "../src/sandbox/docker/sweep.js";
import { createDockerSandbox } from "../src/sandbox/docker.js";
import type { Sandbox } from "../src/sandbox/types.js";
import { reap } from "../src/sandbox.js";
import { BUSYBOX, whyNoDocker } from "./support/docker-engine.js";
import { dockerCensus } from "./support/docker-harness.js";
import { createScratch } from "./support/scratch.js";

const reason = whyNoDocker(BUSYBOX);
const scratch = createScratch();
const place = mkdtempSync(join(tmpdir(), "glovebox-faults-"));
const MIB = 1 << 20;
let engine: TestEngine;

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

async function daemon(): Promise<number> {
  for (let i = 0; i < 200; i++) {
    const pid = engine.daemon();
    if (pid !== undefined) return pid;
    await delay(50);
  }
  throw new Error("the engine does not run");
}

describe.skipIf(reason !== undefined)("when the engine fails", () => {
  beforeAll(async () => {
    engine = await startEngine(join(place, "engine"), { dataSize: 96 * MIB });
    await ensureImage(engine.host, BUSYBOX);
    process.env["DOCKER_HOST"] = engine.host;
  });
  afterAll(async () => {
    if (engine !== undefined) await stopEngine(engine);
    rmSync(place, { recursive: true, force: true });
    scratch.remove();
  });

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

  test("an engine that stands still makes calls wait no longer than they may", async () => {
    const sandbox = await createDockerSandbox({ image: BUSYBOX, operationTimeout: 3_000 });
    const pid = await daemon();
    process.kill(pid, "SIGSTOP");
    try {
      const exec = await sandbox.exec({ argv: ["true"], timeout: 1_000 }).then(
        ({ timedOut }) => (timedOut ? "timed out" : "a result"),
        ({ code }: { code: string }) => code,
      );
      expect(["timed out", "unavailable", "backend_lost"]).toContain(exec);
      await expect(sandbox.readFile("x")).rejects.toMatchObject({ code: "unavailable" });
      const opening = createDockerSandbox({ image: BUSYBOX, signal: AbortSignal.timeout(500) });
      await expect(opening).rejects.toMatchObject({ code: "aborted" });
    } finally {
      process.kill(pid, "SIGCONT");
    }
    await sandbox.teardown();
    await reap();
    expect(await dockerCensus()).toEqual([]);
  });

  test("an engine that is killed in the middle loses what ran; the next sandbox works", async () => {
    const sandbox = await createDockerSandbox({ image: BUSYBOX });
    const call = await underWay(sandbox);
    process.kill(await daemon(), "SIGKILL");
    await expect(call()).rejects.toMatchObject({ code: "backend_lost" });
    await expect(createDockerSandbox({ image: BUSYBOX })).rejects.toMatchObject({
      code: expect.stringMatching(/^(unavailable|backend_lost)$/),
    });
    await waitForEngine(engine.folder);
    await sandbox.teardown();
    await reap();
    await sweepEngine();
    expect(await dockerCensus()).toEqual([]);
    await using next = await createDockerSandbox({ image: BUSYBOX });
    expect((await next.exec({ argv: ["echo", "again"] })).stdout).toBe("again\n");
  });
});

if (reason !== undefined) test("faults of an engine", ({ skip }) => skip(reason));

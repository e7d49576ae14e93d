import { afterAll, beforeAll, expect, test } from "vitest";
import { createDockerSandbox } from "../../../../src/sandbox/backends/docker.js";
import { describeUnless } from "../../../support/describe-unless.js";
import { startCarelessEngine } from "../../../support/docker/careless-engine.js";
import { BUSYBOX, useEngine, whyNoDocker } from "../../../support/docker/engine.js";
import { dockerCensus } from "../../../support/docker/harness.js";
import { SET_UP_LIMIT } from "../../../support/run/set-up-limit.js";
import { createScratch } from "../../../support/scratch.js";

const MIB = 1 << 20;
const reason = whyNoDocker(BUSYBOX);
const scratch = createScratch();
afterAll(() => scratch.remove());

describeUnless(reason, "limits of a container", {}, () => {
  let host: string;
  let careless: { host: string; close(): void };
  beforeAll(async () => {
    host = await useEngine(BUSYBOX);
    careless = await startCarelessEngine(host, scratch.path);
  }, SET_UP_LIMIT);
  afterAll(() => careless.close());

  test.each([
    [{ memory: 64 * MIB }, /did not apply limits\.memory \(67108864\): the container has \d+/],
    [{ pids: 40 }, /did not apply limits\.pids \(40\): the container has none/],
  ])("that an engine ignores without a word are unsupported, and nothing is left: %j", async (limits, message) => {
    const opening = createDockerSandbox({ image: BUSYBOX, limits, docker: { host: careless.host } });
    await expect(opening).rejects.toMatchObject({ code: "unsupported", hint: expect.any(String) as string });
    await expect(opening).rejects.toThrow(message);
    expect(await dockerCensus()).toEqual([]);
  });

  test("that nobody asked for are not checked: such an engine works", async () => {
    await using sandbox = await createDockerSandbox({ image: BUSYBOX, docker: { host: careless.host } });
    expect((await sandbox.exec({ argv: ["true"] })).exitCode).toBe(0);
  });

  test("that an engine applies are found in the container", async () => {
    const limits = { memory: 64 * MIB, pids: 40 };
    await using sandbox = await createDockerSandbox({ image: BUSYBOX, limits, docker: { host } });
    expect((await sandbox.exec({ argv: ["true"] })).exitCode).toBe(0);
  });
});

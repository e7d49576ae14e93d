import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { SandboxEvent } from "../../../../contracts/types.js";
import { docker } from "../../../../src/sandbox/backends/docker.js";
import { openSandbox } from "../../../../src/sandbox.js";
import { describeUnless } from "../../../support/describe-unless.js";
import { BUSYBOX, useEngine, whyNoDocker } from "../../../support/docker/engine.js";
import { dockerCensus } from "../../../support/docker/harness.js";
import { startHubEngine } from "../../../support/docker/hub-engine.js";
import { SET_UP_LIMIT } from "../../../support/run/set-up-limit.js";
import { createScratch } from "../../../support/scratch.js";

const reason = whyNoDocker(BUSYBOX);
const scratch = createScratch();
afterAll(() => scratch.remove());

const image = docker.defaultImage ?? "";

test("the default image is one constant with a tag", () => {
  expect(image).toMatch(/^[a-z]+:[\w.-]+$/);
});

describeUnless(reason, "a container without the option image", {}, () => {
  let host: string;
  const folder = (name: string): string => {
    const path = join(scratch.path, name);
    mkdirSync(path);
    return path;
  };
  beforeAll(async () => {
    host = await useEngine(BUSYBOX);
  }, SET_UP_LIMIT);

  test("is made of the default image, which is pulled once with a message that names it", async () => {
    const hub = await startHubEngine(host, folder("pulled"), { image, content: BUSYBOX });
    const events: SandboxEvent[] = [];
    try {
      const opts = {
        backend: "docker",
        docker: { host: hub.host },
        onEvent: (event: SandboxEvent) => events.push(event),
      };
      {
        await using sandbox = await openSandbox(opts);
        expect((await sandbox.exec({ argv: ["echo", "hello"] })).stdout).toBe("hello\n");
        expect(events[0]).toMatchObject({ type: "progress", backend: "docker", sandboxId: sandbox.id });
        expect(events[0]?.message).toBe(`pulling the image ${image}`);
      }
      await using again = await openSandbox(opts);
      expect((await again.exec({ argv: ["true"] })).exitCode).toBe(0);
      expect(hub.pulled).toEqual([image]);
      expect(events.filter(({ type }) => type === "progress")).toHaveLength(1);
    } finally {
      hub.close();
    }
  });

  test("is refused with the flag --image when the default image can't be pulled, and nothing is left", async () => {
    const hub = await startHubEngine(host, folder("refused"), { image, content: undefined });
    try {
      const opening = openSandbox({ backend: "docker", docker: { host: hub.host } });
      await expect(opening).rejects.toMatchObject({ hint: expect.stringContaining("--image") as string });
      await expect(opening).rejects.toThrow(`Pulling ${image} failed: no route to the registry`);
      const never = openSandbox({ backend: "docker", docker: { host: hub.host, pull: "never" } });
      await expect(never).rejects.toMatchObject({
        code: "not_found",
        hint: expect.stringContaining("--image") as string,
      });
      expect(hub.pulled).toEqual([image]);
      expect(await dockerCensus()).toEqual([]);
    } finally {
      hub.close();
    }
  });

  test("fails without that hint when the user named the image", async () => {
    const hub = await startHubEngine(host, folder("named"), { image: "glovebox-test/none:1", content: undefined });
    try {
      const opening = openSandbox({ backend: "docker", image: "glovebox-test/none:1", docker: { host: hub.host } });
      await expect(opening).rejects.toThrow(/^Pulling glovebox-test\/none:1 failed/);
    } finally {
      hub.close();
    }
  });
});

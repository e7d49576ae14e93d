import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { killAndGoOn } from "../support/batch/kill-and-go-on.js";
import { type Bench, createBench } from "../support/cli.js";
import { BUSYBOX, useEngine, whyNoDocker } from "../support/docker/engine.js";
import { askEngine } from "../support/docker/task-place.js";
import { SET_UP_LIMIT } from "../support/run/set-up-limit.js";

let bench: Bench;
beforeAll(() => {
  bench = createBench();
});
afterAll(() => bench.remove());

test("1,000 tasks on local have one result each though their driver was killed three times, and nothing is left", async () => {
  await killAndGoOn(bench, { name: "local", count: 1000, argv: ["-b", "local"], env: {} });
  expect(await bench.settled()).toEqual([]);
});

describe("on Docker", () => {
  const reason = whyNoDocker(BUSYBOX);
  let env: Record<string, string>;
  beforeAll(async () => {
    if (reason === undefined) env = { DOCKER_HOST: await useEngine(BUSYBOX) };
  }, SET_UP_LIMIT);

  test("1,000 tasks have one result each though their driver was killed three times, and nothing is left", async ({
    skip,
  }) => {
    if (reason !== undefined) skip(reason);
    await killAndGoOn(bench, {
      name: "docker",
      count: 1000,
      argv: ["-b", "docker", "--image", BUSYBOX, "-c", "8"],
      env,
    });
    const left = (): Promise<{ Names: string[] }[]> => askEngine("GET", "/containers/json", { all: true });
    await expect.poll(async () => (await left()).length).toBe(0);
    // The engine itself takes about a minute for them on two cores, and several beside other work.
  }, 900_000);
});

import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { SandboxOptions } from "../../../../src/sandbox/types.js";
import { listSandboxes } from "../../../../src/sandbox.js";
import { createHabits } from "../../../fakes/daytona/habits.js";
import type { SandboxEntry } from "../../../fakes/daytona/sandbox-state.js";
import { type DaytonaService, startDaytonaService } from "../../../support/daytona/service.js";

let there: DaytonaService;
beforeAll(async () => {
  there = await startDaytonaService();
});
afterAll(() => there.close());
afterEach(() => {
  Object.assign(there.service.habits, createHabits());
});

function entryOf({ id }: { id: string }): SandboxEntry {
  return there.service.entry(`glovebox-${id}`);
}

/** Nothing of it is left, here or there. */
async function expectNothing(): Promise<void> {
  expect([...there.service.sandboxes.values()].filter(({ state }) => state !== "destroying")).toEqual([]);
  expect(await listSandboxes()).toEqual([]);
}

describe("resources", () => {
  test("more cores and memory than the snapshot has are given to the running machine", async () => {
    there.service.habits.buildMs = 50;
    await using sandbox = await there.open({ daytona: { resources: { cpu: 4, memory: 8 } } });
    expect(entryOf(sandbox)).toMatchObject({ size: { cpu: 4, memory: 8, disk: 8 }, autoDeleteInterval: 0 });
    expect((await sandbox.exec({ argv: ["echo", "up"] })).stdout).toBe("up\n");
  });

  test("what the snapshot already has is not asked for again", async () => {
    const before = there.service.requests.length;
    await using sandbox = await there.open({ daytona: { resources: { cpu: 2, memory: 4 } } });
    expect(entryOf(sandbox).size).toEqual({ cpu: 2, memory: 4, disk: 8 });
    expect(there.service.requests.slice(before).filter((line) => line.includes("resize"))).toEqual([]);
  });

  test("a larger disk is given to a machine that stands still, which is gone when it stops all the same", async () => {
    await using sandbox = await there.open({ daytona: { resources: { disk: 20 } } });
    expect(entryOf(sandbox)).toMatchObject({ size: { disk: 20 }, state: "started", autoDeleteInterval: 0 });
    await sandbox.writeFile("x", "y");
    await using fork = await sandbox.fork();
    expect(entryOf(fork)).toMatchObject({ size: { disk: 20 }, autoDeleteInterval: 0 });
    expect(await fork.readFile("x")).toBe("y");
  });

  test.each([
    ["more than the organisation may have", { cpu: 64 }, "exceeds maximum allowed"],
    ["less than the running machine has", { memory: 1 }, "must be in stopped state to decrease"],
    ["a disk that is smaller", { disk: 4 }, "cannot be decreased"],
  ])("%s is refused with the service's reason, and nothing is left", async (_what, resources, reason) => {
    const refusal = { code: "unsupported", message: expect.stringContaining(reason) };
    await expect(there.open({ daytona: { resources } })).rejects.toMatchObject(refusal);
    await expectNothing();
  });

  test("a size that the service only seems to give is no sandbox", async () => {
    const action = { status: 200, body: { id: "x", name: "x", state: "started", cpu: 2, memory: 4, disk: 8 } };
    there.service.habits.faults = [{ match: /\/resize/, action }];
    const refusal = { code: "unsupported", message: expect.stringContaining("did not get") };
    await expect(there.open({ daytona: { resources: { cpu: 4 } } })).rejects.toMatchObject(refusal);
    await expectNothing();
  });
});

describe("an image", () => {
  const sized = { image: "debian:12", daytona: { resources: { cpu: 3, memory: 5, disk: 9 } } } satisfies SandboxOptions;

  test("is built by the service, and the machine has the size from the start", async () => {
    there.service.habits.buildMs = 50;
    const before = there.service.requests.length;
    await using sandbox = await there.open(sized);
    const { asked, size } = entryOf(sandbox);
    expect(asked).toMatchObject({ buildInfo: { dockerfileContent: "FROM debian:12\n" }, cpu: 3, memory: 5, disk: 9 });
    expect([asked["snapshot"], size]).toEqual([undefined, { cpu: 3, memory: 5, disk: 9 }]);
    expect(there.service.requests.slice(before).filter((line) => /resize|stop/.test(line))).toEqual([]);
    expect((await sandbox.exec({ argv: ["echo", "up"] })).stdout).toBe("up\n");
  });

  test("that cannot be built is a wrong argument with the reason, and nothing is left", async () => {
    there.service.habits.failingBuild = /no-such\S*/;
    await expect(there.open({ image: "no-such:1" })).rejects.toMatchObject({
      code: "invalid_argument",
      message: expect.stringMatching(/image "no-such:1".*build failed at no-such:1/),
    });
    await expectNothing();
  });

  test("with a size that the organisation may not have is refused before it is built", async () => {
    there.service.habits.largest = { cpu: 2, memory: 4, disk: 8 };
    const refusal = { code: "unsupported", message: expect.stringContaining("CPU request 3 exceeds maximum") };
    await expect(there.open(sized)).rejects.toMatchObject(refusal);
    await expectNothing();
  });
});

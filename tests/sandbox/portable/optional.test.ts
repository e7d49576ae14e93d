import { afterEach, describe, expect, it } from "vitest";
import type { Driver, Sandbox } from "../../../src/sandbox/types.js";
import { createSandbox } from "../../../src/sandbox.js";
import { openPlainDriver } from "../../fixtures/plain-driver.js";
import { change } from "../../support/change.js";

const TOKEN = "ghp_this-is-the-token";
let sandbox: Sandbox;

afterEach(() => sandbox.teardown());

/** A sandbox over a driver that can do a little more than the plain one. */
async function open(more: Partial<Driver>, ports = true): Promise<Sandbox> {
  sandbox = createSandbox(change(await openPlainDriver({ ports, git: true }), more), { githubToken: TOKEN });
  return sandbox;
}

describe("what only some drivers can do", () => {
  it("pushes a branch, and tells the default one", async () => {
    const pushed: unknown[] = [];
    const box = await open({
      git: {
        async pushBranch(branch, token) {
          pushed.push([branch, token]);
          return { pushed: false, error: "behind" };
        },
        defaultBranch: async () => "trunk",
      },
    });
    expect(await box.pushBranch("topic", TOKEN)).toEqual({ pushed: false, error: "behind" });
    expect(pushed).toEqual([["topic", TOKEN]]);
    expect(await box.defaultBranch()).toBe("trunk");
  });

  it("refuses a push without a branch or a token before the driver hears of it", async () => {
    const pushBranch = async (): Promise<never> => {
      throw new Error("the driver was asked");
    };
    const box = await open({ git: { pushBranch, defaultBranch: pushBranch } });
    await expect(box.pushBranch("", TOKEN)).rejects.toMatchObject({ code: "invalid_argument" });
    await expect(box.pushBranch("topic", "")).rejects.toMatchObject({ code: "invalid_argument" });
  });

  it("never shows the token in the error of a push", async () => {
    const git = {
      pushBranch: () => Promise.reject(new Error(`https://x:${TOKEN}@example.invalid refused`)),
      defaultBranch: async () => "trunk",
    };
    const error: unknown = await (await open({ git })).pushBranch("topic", TOKEN).catch((caught: unknown) => caught);
    expect(error).toMatchObject({
      code: "internal",
      operation: "pushBranch",
      message: expect.stringContaining("refused"),
    });
    expect((error as Error).message).not.toContain(TOKEN);
  });

  it("gives the address of a port", async () => {
    const box = await open({ url: async (port) => `https://${port}.example.invalid` });
    expect(await box.url(8080)).toBe("https://8080.example.invalid");
    for (const port of [0, 65_536, 1.5, "80" as unknown as number]) {
      await expect(box.url(port)).rejects.toMatchObject({ code: "invalid_argument" });
    }
  });

  it("refuses the address of a port where ports are no capability", async () => {
    const box = await open({ url: async () => "https://example.invalid" }, false);
    await expect(box.url(8080)).rejects.toMatchObject({ code: "unsupported" });
  });

  it("forks into sandboxes that work", async () => {
    const box = await open({
      fork: async (count) => Promise.all(Array.from({ length: count }, () => openPlainDriver())),
    });
    await using one = await box.fork();
    expect((await one.exec({ argv: ["echo", "fork"] })).stdout).toBe("fork\n");
    const many = await box.fork({ count: 2 });
    expect(new Set([box, one, ...many].map(({ id }) => id)).size).toBe(4);
    for (const each of many) await each.teardown();
  });

  it("says so when a driver forked nothing", async () => {
    await expect((await open({ fork: async () => [] })).fork()).rejects.toMatchObject({ code: "internal" });
  });
});

import { afterAll, beforeAll, describe, test } from "vitest";
import { createVercelSandbox } from "../../../../src/sandbox/backends/vercel.js";
import type { Sandbox, SandboxOptions } from "../../../../src/sandbox/types.js";
import { FakeVercel } from "../../../fakes/vercel/server.js";
import { createScratch, type Scratch } from "../../../support/scratch.js";

/** Longer than the SDK waits by itself, and than we try without being told anything. */
const SECONDS = 25;

let scratch: Scratch;

beforeAll(() => {
  scratch = createScratch();
});

afterAll(() => scratch.remove());

/** Each has a service of its own, for they wait long and do so at one time. */
async function withSandbox(
  opts: SandboxOptions,
  work: (sandbox: Sandbox, service: FakeVercel) => Promise<void>,
): Promise<void> {
  const service = await FakeVercel.start();
  try {
    const sandbox = await createVercelSandbox({ ...opts, vercel: { ...service.options, ...opts.vercel } });
    try {
      await sandbox.writeFile("file", "there");
      await work(sandbox, service);
    } finally {
      await sandbox.teardown();
    }
  } finally {
    await service.close();
  }
}

describe.concurrent("a service that asks to wait", () => {
  test("is left alone for so long, and nothing is lost", async ({ expect }) => {
    await withSandbox({}, async (sandbox, service) => {
      // Who listens already hears the answer without a request.
      await expect.poll(() => service.listeners(sandbox.id), { interval: 200 }).toBe(0);
      service.faults.limit(/./, SECONDS);
      const before = service.requests.length;
      const began = performance.now();
      expect((await sandbox.shell("echo ran >> runs; wc -l < runs")).stdout.trim()).toBe("1");
      expect(performance.now() - began).toBeGreaterThan((SECONDS - 2) * 1_000);
      // A letter and a listener, each refused once or twice and then taken; and the log of the listener.
      expect(service.requests.length - before).toBeLessThan(12);
      expect(await sandbox.readFile("file")).toBe("there");
    });
  });

  test("is not waited for longer than a call may take, and the sandbox stays", async ({ expect }) => {
    // Enough to open one on a busy machine.
    await withSandbox({ operationTimeout: 10_000 }, async (sandbox, service) => {
      await expect.poll(() => service.listeners(sandbox.id), { interval: 200 }).toBe(0);
      service.faults.limit(/./, SECONDS);
      await expect(sandbox.readFile("file")).rejects.toMatchObject({ code: "unavailable" });
      // Longer than it may wait: refused at once, and the machine is not stopped for it.
      const began = performance.now();
      const hint = expect.stringMatching(/wait \d+ s/);
      await expect(sandbox.snapshot()).rejects.toMatchObject({ code: "unavailable", hint });
      expect(performance.now() - began).toBeLessThan(2_500);
      const read = (): Promise<unknown> => sandbox.readFile("file").catch(() => undefined);
      await expect.poll(read, { timeout: 60_000, interval: 500 }).toBe("there");
    });
  });

  test("is waited for when a sandbox goes on in another machine", async ({ expect }) => {
    await withSandbox({}, async (sandbox, service) => {
      service.faults.limit(/^POST \/v3\/sandboxes$/, SECONDS);
      await sandbox.snapshot();
      expect(await sandbox.readFile("file")).toBe("there");
    });
  });
});

describe.concurrent("the time of a machine", () => {
  /** Options with this time, and the warnings that come of it. */
  const timed = (timeout: number): { opts: SandboxOptions; warnings: string[] } => {
    const warnings: string[] = [];
    const onEvent: SandboxOptions["onEvent"] = ({ type, message }) =>
      void (type === "warning" && warnings.push(message));
    return { opts: { vercel: { timeout }, onEvent }, warnings };
  };
  const sleep = async (sandbox: Sandbox, seconds: number): Promise<string> =>
    (await sandbox.exec({ argv: ["sh", "-c", `sleep ${seconds}; echo fine`] })).stdout;

  test("is extended as soon as a busy service allows it", async ({ expect }) => {
    const { opts, warnings } = timed(16_000);
    await withSandbox(opts, async (sandbox, service) => {
      service.faults.add(/extend-timeout$/, { status: 503 }, 4);
      expect(await sleep(sandbox, 17)).toBe("fine\n");
      expect(warnings).toEqual([]);
    });
  });

  test("is not extended beyond what the plan allows, with a warning", async ({ expect }) => {
    const { opts, warnings } = timed(12_000);
    await withSandbox(opts, async (sandbox, service) => {
      service.store.maxTimeout = 18_000;
      expect(await sleep(sandbox, 7)).toBe("fine\n");
      expect(warnings.join()).toMatch(/could not be extended: .*18000 ms/);
    });
  });

  test("is extended while something runs, and not while it stands idle", async ({ expect }) => {
    await withSandbox(timed(10_000).opts, async (sandbox, service) => {
      const before = service.requests.length;
      expect(await sleep(sandbox, 11)).toBe("fine\n");
      const extensions = service.requests.slice(before).filter(({ line }) => /extend-timeout/.test(line));
      expect(extensions.length).toBeGreaterThanOrEqual(1);
    });
  });

  test("that the service does not extend is a warning, and the command goes on", async ({ expect }) => {
    const { opts, warnings } = timed(16_000);
    await withSandbox(opts, async (sandbox, service) => {
      const refusal = { status: 400, code: "sandbox_timeout_invalid", message: "too long" };
      service.faults.add(/extend-timeout$/, refusal, 9);
      expect(await sleep(sandbox, 9)).toBe("fine\n");
      expect(warnings.join()).toMatch(/could not be extended/);
    });
  });
});

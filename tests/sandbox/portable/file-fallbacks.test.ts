import { symlink } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createSandbox } from "../../../src/sandbox/portable.js";
import type { Sandbox } from "../../../src/sandbox/types.js";
import { openPlainDriver, type PlainDriver } from "../../fixtures/plain-driver.js";

/** A driver with the methods that every driver must have, and no other. */
let driver: PlainDriver;
let box: Sandbox;
beforeEach(async () => {
  driver = await openPlainDriver();
  box = createSandbox(driver, { operationTimeout: 20_000 });
});
afterEach(() => box.teardown());

test("a list with details is made from single descriptions", async () => {
  await box.writeFiles({ "d/b": "12", "d/a": "1", "d/sub/x": "" });
  const entries = await box.listDirectory("d", { details: true });
  expect(entries.map(({ name, type, size }) => [name, type, type === "file" ? size : 0])).toEqual([
    ["a", "file", 1],
    ["b", "file", 2],
    ["sub", "directory", 0],
  ]);
});

test("streams are made from whole files", async () => {
  async function* source(): AsyncGenerator<Uint8Array> {
    yield Buffer.from("one ");
    yield Buffer.from("two");
  }
  await box.writeFile("file", source());
  const read = async (opts: { start?: number; end?: number }): Promise<string> =>
    await new Response(await box.readStream("file", opts)).text();
  expect([await read({}), await read({ start: 4 }), await read({ start: 1, end: 3 })]).toEqual([
    "one two",
    "two",
    "ne",
  ]);
  expect(await box.readStream("missing")).toBeNull();
});

test("what cannot be done honestly is unsupported", async () => {
  await box.writeFiles({ file: "x", "dir/x": "" });
  await box.makeDirectory("empty");
  await symlink("file", join(box.workDir, "link"));
  expect(await box.exists("file")).toBe(true);
  expect(await box.exists("missing")).toBe(false);
  const calls: readonly (() => Promise<unknown>)[] = [
    () => box.stat("link", { follow: true }),
    () => box.exists("link"),
    () => box.copy("file", "other"),
    () => box.appendFile("file", "y"),
    () => box.remove("empty"),
  ];
  for (const call of calls) {
    await expect(call()).rejects.toMatchObject({ code: "unsupported", message: expect.stringContaining("plain") });
  }
  expect(await box.remove("dir", { recursive: true })).toBe(true);
  expect(await box.readFile("file")).toBe("x");
});

test("a driver that does not answer is given up when the signal is aborted, and at the deadline", async () => {
  driver.stat = () => new Promise(() => undefined);
  const began = performance.now();
  await expect(box.stat("file", { signal: AbortSignal.timeout(100) })).rejects.toMatchObject({ code: "aborted" });
  expect(performance.now() - began).toBeLessThan(5_000);
  const short = createSandbox(driver, { operationTimeout: 100 });
  await expect(short.stat("file")).rejects.toMatchObject({ code: "unavailable" });
});

test("an endless source without a pause does not delay the deadline", async () => {
  const short = createSandbox(driver, { operationTimeout: 300 });
  const began = performance.now();
  async function* endless(): AsyncGenerator<Uint8Array> {
    for (;;) yield new Uint8Array(1);
  }
  await expect(short.writeFile("file", endless())).rejects.toMatchObject({ code: "unavailable" });
  expect(performance.now() - began).toBeLessThan(5_000);
  expect(await box.exists("file")).toBe(false);
});

test("a stream whose next chunk never comes fails at the deadline", async () => {
  const short = createSandbox(driver, { operationTimeout: 200 });
  let freed = false;
  Object.assign(driver, {
    readStream: async () => ({
      [Symbol.asyncIterator]: () => ({
        next: () => new Promise(() => undefined),
        return: async () => {
          freed = true;
          return { done: true, value: undefined };
        },
      }),
    }),
  });
  const reader = (await short.readStream("file"))?.getReader();
  await expect(reader?.read()).rejects.toMatchObject({ code: "unavailable", operation: "readStream" });
  expect(freed).toBe(true);
});

test("a source whose next chunk never comes is freed when the call is given up", async () => {
  for (const given of [{ timeout: 200 }, { signal: 200 }]) {
    const short = createSandbox(driver, { operationTimeout: given.timeout ?? 20_000 });
    const opts = (): { signal?: AbortSignal } =>
      given.signal === undefined ? {} : { signal: AbortSignal.timeout(given.signal) };
    const freed: string[] = [];
    const iterable = {
      [Symbol.asyncIterator]: () => ({
        next: () => new Promise<never>(() => undefined),
        return: async () => {
          freed.push("iterable");
          return { done: true as const, value: undefined };
        },
      }),
    };
    const stream = new ReadableStream<Uint8Array>({
      pull: () => new Promise<never>(() => undefined),
      cancel: () => void freed.push("stream"),
    });
    const code = given.signal === undefined ? "unavailable" : "aborted";
    await expect(short.writeFile("file", iterable, opts())).rejects.toMatchObject({ code });
    await expect(short.writeFile("file", stream, opts())).rejects.toMatchObject({ code });
    await expect.poll(() => freed, { timeout: 30_000 }).toEqual(["iterable", "stream"]);
    expect(stream.locked).toBe(false);
  }
});

test("a stream that somebody else reads is refused", async () => {
  const { readable } = new TransformStream<Uint8Array, Uint8Array>();
  readable.getReader();
  const message = expect.stringContaining("nobody else reads") as string;
  await expect(box.writeFile("file", readable)).rejects.toMatchObject({ code: "invalid_argument", message });
});

test("a source that fails, ends or has a bad chunk is freed, and its stream is unlocked", async () => {
  for (const [chunks, code] of [
    [[new Uint8Array(1)], undefined],
    [["text"], "invalid_argument"],
  ] as const) {
    const stream = ReadableStream.from(chunks as Iterable<Uint8Array>);
    const written = await box.writeFile("file", stream).catch((error: { code: string }) => error.code);
    expect(written).toBe(code);
    await expect.poll(() => stream.locked, { timeout: 30_000 }).toBe(false);
  }
});

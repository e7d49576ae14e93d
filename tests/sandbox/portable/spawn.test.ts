import { afterEach, describe, expect, test } from "vitest";
import { createSandbox } from "../../../src/sandbox/portable.js";
import type { Sandbox } from "../../../src/sandbox/types.js";
import { openPlainDriver, type PlainDriver } from "../../fixtures/plain-driver.js";
import { isAlive } from "../../fixtures/process-state.js";

let box: Sandbox;
let driver: PlainDriver;

async function plain(): Promise<Sandbox> {
  driver = await openPlainDriver();
  box = createSandbox(driver, { operationTimeout: 30_000 });
  return box;
}

async function textOf(stream: ReadableStream<Uint8Array>): Promise<string> {
  let text = "";
  for await (const chunk of stream) text += Buffer.from(chunk).toString();
  return text;
}

async function firstLine(stream: ReadableStream<Uint8Array>): Promise<string> {
  const reader = stream.getReader();
  const { value } = await reader.read();
  reader.releaseLock();
  return Buffer.from(value ?? [])
    .toString()
    .trim();
}

afterEach(async () => {
  await box.teardown();
});

describe("a spawned process", () => {
  test("is read by its streams, fed by its stdin, and listed while it runs", async () => {
    await plain();
    const child = await box.spawn({ argv: ["cat"], stdin: "pipe" });
    const listed = await box.processes();
    expect(listed).toMatchObject([{ id: child.id, argv: ["cat"], startedAt: expect.any(String), state: "running" }]);
    expect(new Date(listed[0]?.startedAt ?? "").toISOString()).toBe(listed[0]?.startedAt);
    const writer = child.stdin?.getWriter();
    await writer?.write(Buffer.from("hello "));
    await writer?.write(Buffer.from("there"));
    await writer?.close();
    expect(await textOf(child.stdout)).toBe("hello there");
    expect(await child.wait()).toMatchObject({ exitCode: 0, timedOut: false });
    expect(await box.processes()).toMatchObject([{ id: child.id, state: "ended", exit: { exitCode: 0 } }]);
  });

  test("has no deadline and no stdin unless asked for", async () => {
    await plain();
    const child = await box.spawn({ argv: ["cat"] });
    expect(child.stdin).toBeUndefined();
    expect(child.resize).toBeUndefined();
    expect(await child.wait()).toMatchObject({ exitCode: 0 });
    expect(driver.starts[0]).toMatchObject({ stdin: "none" });
    expect("timeout" in (driver.starts[0] ?? {})).toBe(false);
  });

  test("takes signals, and wait tells the one that ended it", async () => {
    await plain();
    const child = await box.spawn({ argv: ["sleep", "60"] });
    await expect(child.kill("SIGNOTHING")).rejects.toMatchObject({ code: "invalid_argument" });
    await child.kill();
    expect(await child.wait()).toMatchObject({ exitCode: 143, signal: "SIGTERM", timedOut: false });
    await child.kill("SIGKILL");
  });

  test("is ended at its deadline", async () => {
    await plain();
    const child = await box.spawn({ argv: ["sleep", "60"], timeout: 100 });
    expect(await child.wait()).toMatchObject({ exitCode: 137, timedOut: true });
    expect(driver.starts[0]?.timeout).toBe(600);
  });

  test("is ended by its signal, and wait rejects", async () => {
    await plain();
    const controller = new AbortController();
    const child = await box.spawn({ argv: ["sh", "-c", "echo $$; sleep 60"], signal: controller.signal });
    const pid = Number(await firstLine(child.stdout));
    controller.abort();
    await expect(child.wait()).rejects.toMatchObject({ code: "aborted", operation: "spawn", backend: "plain" });
    expect(isAlive(pid)).toBe(false);
    const aborted = box.spawn({ argv: ["true"], signal: controller.signal });
    await expect(aborted).rejects.toMatchObject({ code: "aborted" });
    expect(driver.starts).toHaveLength(1);
  });

  test("dies when it is disposed of", async () => {
    await plain();
    const child = await box.spawn({ argv: ["sh", "-c", "echo $$; sleep 60"] });
    const pid = Number(await firstLine(child.stdout));
    await child[Symbol.asyncDispose]();
    expect(isAlive(pid)).toBe(false);
  });

  test("goes on when nobody wants its output any more", async () => {
    await plain();
    const child = await box.spawn({ argv: ["head", "-c", "3000000", "/dev/zero"] });
    await child.stdout.cancel();
    expect(await child.wait()).toMatchObject({ exitCode: 0 });
  });

  test("stands still while nobody reads", async () => {
    await plain();
    const script = "head -c 3000000 /dev/zero; touch done";
    const child = await box.spawn({ argv: ["sh", "-c", script] });
    await box.exec({ argv: ["sleep", "0.3"] });
    expect(await box.stat("done")).toBeNull();
    expect((await textOf(child.stdout)).length).toBe(3_000_000);
    await child.wait();
    expect(await box.stat("done")).not.toBeNull();
  });

  test("gives its output to a consumer, whose failure ends it", async () => {
    await plain();
    let seen = "";
    const child = await box.spawn({
      argv: ["sh", "-c", "echo out; echo error >&2"],
      onStdout: (chunk) => {
        seen += Buffer.from(chunk).toString();
      },
    });
    expect(await textOf(child.stdout)).toBe("");
    expect(await textOf(child.stderr)).toBe("error\n");
    await child.wait();
    expect(seen).toBe("out\n");
    const cause = new Error("consumer broke");
    const broken = await box.spawn({
      argv: ["sh", "-c", "echo out; sleep 60"],
      onStdout: () => Promise.reject(cause),
    });
    await expect(broken.wait()).rejects.toMatchObject({ code: "aborted", cause });
  });

  test("does not outlive the sandbox", async () => {
    await plain();
    const child = await box.spawn({ argv: ["sh", "-c", "echo $$; sleep 60"] });
    const pid = Number(await firstLine(child.stdout));
    await box.teardown();
    await expect(child.wait()).rejects.toMatchObject({ code: "closed" });
    expect(isAlive(pid)).toBe(false);
  });
});

describe("teardown", () => {
  test("is done once, and everything after it is closed", async () => {
    await plain();
    await Promise.all([box.teardown(), box.teardown()]);
    await box[Symbol.asyncDispose]();
    expect(driver.destroyed).toBe(1);
    const calls = [
      box.exec({ argv: ["true"] }),
      box.shell("true"),
      box.spawn({ argv: ["true"] }),
      box.processes(),
      box.readFile("a"),
      box.writeFile("a", "b"),
      box.setWorkdir("."),
      box.snapshot(),
      box.exportDirectory(".", "/tmp/never-made"),
    ];
    await Promise.all(calls.map((call) => expect(call).rejects.toMatchObject({ code: "closed" })));
  });

  test("ends a command that runs, which rejects with what there was", async () => {
    await plain();
    let started: () => void = () => undefined;
    const running = new Promise<void>((resolve) => {
      started = resolve;
    });
    const call = box.shell("echo begun; sleep 60", { onStdout: () => started() });
    const outcome = call.catch((error: unknown) => error);
    await running;
    await box.teardown();
    expect(await outcome).toMatchObject({ code: "closed", partial: { stdout: "begun\n" } });
  });

  test("never throws: what could not be removed is an event, and the next call tries again", async () => {
    driver = await openPlainDriver();
    const close = driver.close.bind(driver);
    driver.close = () => Promise.reject(new Error("busy"));
    const events: string[] = [];
    box = createSandbox(driver, { onEvent: (event) => events.push(`${event.type}: ${event.message}`) });
    await box.teardown();
    expect(events.at(-1)).toMatch(/^leak: .*busy/);
    driver.close = close;
    await box.teardown();
    expect(driver.destroyed).toBe(1);
    expect(events.at(-1)).toMatch(/^teardown: /);
  });
});

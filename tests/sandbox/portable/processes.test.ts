import { afterEach, describe, expect, test } from "vitest";
import { SandboxError } from "../../../contracts/errors.js";
import { ProcessTable } from "../../../src/sandbox/portable/process-table.js";
import { TrackedProcess } from "../../../src/sandbox/portable/tracked-process.js";
import { createSandbox } from "../../../src/sandbox/portable.js";
import type { Sandbox } from "../../../src/sandbox/types.js";
import { openPlainDriver, type PlainDriver } from "../../fixtures/plain-driver.js";

let box: Sandbox;
let driver: PlainDriver;

async function plain(): Promise<Sandbox> {
  driver = await openPlainDriver();
  box = createSandbox(driver, { operationTimeout: 30_000 });
  return box;
}

function textOf(data: Uint8Array): string {
  return Buffer.from(data).toString();
}

function tracked(id: string): TrackedProcess {
  const ended = Promise.resolve({ exitCode: 0, timedOut: false, durationMs: 1 });
  return new TrackedProcess({
    id,
    argv: ["true"],
    hasStdin: false,
    hasTerminal: false,
    inBackground: false,
    ended,
    live: undefined,
  });
}

afterEach(async () => {
  await box?.teardown();
});

describe("the processes of a sandbox", () => {
  test("keep the output that their owner has read, and are data when printed", async () => {
    await plain();
    const child = await box.spawn({ argv: ["sh", "-c", "printf out; printf err >&2; exit 3"] });
    const process = await box.process(child.id);
    expect(textOf((await process.read()).data)).toBe("");
    for await (const _ of child.stdout);
    await child.wait();
    const read = await process.read({ stream: "stdout", wait: 30_000 });
    expect([textOf(read.data), read.missed]).toEqual(["out", 0]);
    expect((await process.read({ stream: "stderr" })).data).toHaveLength(0);
    // Nobody reads stderr, and it is not waited for either.
    expect(await process.read({ cursor: 3, wait: 30_000 })).toMatchObject({ ended: true });
    expect(JSON.parse(JSON.stringify(process))).toMatchObject({ id: child.id, state: "ended", exit: { exitCode: 3 } });
  });

  test("keep what a callback got, and what was read and dropped after a cancel", async () => {
    await plain();
    let heard = "";
    const onStdout = (chunk: Uint8Array): void => {
      heard += textOf(chunk);
    };
    const child = await box.spawn({ argv: ["sh", "-c", "printf out; printf err >&2"], onStdout });
    await child.stderr.cancel();
    await child.wait();
    const process = await box.process(child.id);
    await expect.poll(async () => (await process.read()).ended).toBe(true);
    expect(textOf((await process.read({ stream: "stdout" })).data)).toBe("out");
    expect(textOf((await process.read({ stream: "stderr" })).data)).toBe("err");
    expect(heard).toBe("out");
  });

  test("are slowed down by a reader unless they are in the background", async () => {
    await plain();
    const argv = ["sh", "-c", "head -c 4000000 /dev/zero; echo done >&2"];
    await using slow = await box.spawn({ argv });
    const free = await box.spawn({ argv, background: true });
    expect((await free.wait()).exitCode).toBe(0);
    expect((await box.process(slow.id)).state).toBe("running");
    const end = await (await box.process(free.id)).read({ cursor: 4_000_005 });
    expect(end).toMatchObject({ ended: true, missed: 0 });
  });

  test("have streams in the background too, which follow what is kept", async () => {
    await plain();
    const child = await box.spawn({ argv: ["sh", "-c", "printf out; printf err >&2"], background: true });
    await child.wait();
    let [out, err] = ["", ""];
    for await (const chunk of child.stdout) out += textOf(chunk);
    for await (const chunk of child.stderr) err += textOf(chunk);
    expect([out, err]).toEqual(["out", "err"]);
  });

  test("tell how they ended when they were aborted, and that they were lost", async () => {
    await plain();
    const controller = new AbortController();
    const argv = ["sleep", "60"];
    const aborted = await box.spawn({ argv, background: true, signal: controller.signal });
    controller.abort();
    const process = await box.process(aborted.id);
    await expect(process.wait()).rejects.toMatchObject({ code: "aborted" });
    expect(process).toMatchObject({ state: "ended", exit: { exitCode: 137, signal: "SIGKILL" } });
    expect(await process.read({ wait: 30_000 })).toMatchObject({ ended: true });
  });

  test("are attached to after their end too, with nothing more to read or write", async () => {
    await plain();
    const child = await box.spawn({ argv: ["cat"], stdin: "pipe", background: true });
    await child.kill("SIGKILL");
    await child.wait();
    const late = await (await box.process(child.id)).attach();
    for await (const chunk of late.stdout) expect.unreachable(textOf(chunk));
    const writer = late.stdin?.getWriter();
    await writer?.write(Buffer.from("nobody reads it"));
    await writer?.close();
    await expect(late.kill("SIGNOTHING")).rejects.toMatchObject({ code: "invalid_argument" });
    await late.kill();
    expect((await late.wait()).signal).toBe("SIGKILL");
  });

  test("end the streams of one who detaches, also while they are read", async () => {
    await plain();
    await using child = await box.spawn({ argv: ["cat"], stdin: "pipe", background: true });
    const process = await box.process(child.id);
    const attached = await process.attach();
    const [out, err] = [attached.stdout.getReader(), attached.stderr.getReader()];
    const reading = out.read();
    await attached[Symbol.asyncDispose]();
    expect((await reading).done).toBe(true);
    expect((await err.read()).done).toBe(true);
    expect(process.state).toBe("running");
    const cancelled = await process.attach();
    await cancelled.stdout.cancel();
    const writer = cancelled.stdin?.getWriter();
    await writer?.write(Buffer.from("on"));
    expect(textOf((await process.read({ wait: 30_000 })).data)).toBe("on");
  });

  test("are looked up by an id that is a text", async () => {
    await plain();
    await expect(box.process(7 as never)).rejects.toMatchObject({ code: "invalid_argument", operation: "process" });
    await expect(box.process("p0")).rejects.toMatchObject({
      code: "not_found",
      message: expect.stringContaining('"p0"'),
    });
  });
});

describe("the table of processes", () => {
  test("forgets the oldest of more than 64 that have ended, and none that run", async () => {
    const table = new ProcessTable();
    const running = tracked("running");
    table.add(running);
    const ended = Array.from({ length: 66 }, (_, i) => tracked(`ended-${i}`));
    for (const process of ended) table.add(process);
    for (const process of ended) table.ended(process);
    expect(table.all()).toEqual([running, ...ended.slice(2)]);
    expect(() => table.find("ended-1")).toThrow(expect.objectContaining({ code: "not_found" }));
    await expect(ended[1]?.read({})).rejects.toMatchObject({ code: "not_found" });
    table.close();
    expect(table.all()).toEqual([]);
    await expect(ended[5]?.read({})).rejects.toMatchObject({ code: "closed" });
  });

  test("forgets what ended a while ago, and frees its output", async () => {
    const table = new ProcessTable(30);
    const process = tracked("p");
    table.add(process);
    process.add("stdout", Buffer.from("kept"));
    expect(textOf((await process.read({})).data)).toBe("kept");
    const waiting = process.read({ cursor: 4, wait: 30_000 });
    table.ended(process);
    await expect(waiting).rejects.toBeInstanceOf(SandboxError);
    expect(table.all()).toEqual([]);
    expect(process.written("stdout")).toBe(0);
  });
});

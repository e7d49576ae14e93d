import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type AgentTools, createAgentTools } from "../../src/adapters/agent-tools.js";
import type { Sandbox } from "../../src/sandbox/types.js";
import { openSandbox } from "../../src/sandbox.js";
import { createScratch, type Scratch } from "../support/scratch.js";

let scratch: Scratch;
let sandbox: Sandbox;
let tools: AgentTools;
beforeAll(async () => {
  scratch = createScratch();
  sandbox = await openSandbox({ backend: "local", paths: "sandbox" });
  tools = createAgentTools(sandbox);
});
afterAll(async () => {
  await sandbox.teardown();
  scratch.remove();
});

describe("the tools that several frameworks wrap", () => {
  it("lose no edit of several in one step, also through two sets of tools", async () => {
    await sandbox.writeFile("many.txt", "a b c d e f\n");
    const edits = ["a", "b", "c", "d", "e", "f"].map(async (old, at) => {
      const { edit } = at % 2 === 0 ? tools : createAgentTools(sandbox);
      return await edit.run({ path: "many.txt", old, new: `<${old}>` });
    });
    expect(await Promise.all(edits)).toEqual(Array(6).fill("replaced 1 occurrence in many.txt"));
    expect(await sandbox.readFile("many.txt")).toBe("<a> <b> <c> <d> <e> <f>\n");
  });

  it("change no byte and no permission that an edit says nothing about", async () => {
    const before = Buffer.from([0x23, 0x21, 0x2f, 0x62, 0x69, 0x6e, 0xe9, 0xff, 0x00, 0x0d, 0x0a]);
    await sandbox.writeFile("latin", before, { mode: 0o751 });
    expect(await tools.edit.run({ path: "latin", old: "bin", new: "sbin" })).toBe("replaced 1 occurrence in latin");
    const after = Buffer.concat([before.subarray(0, 3), Buffer.from("s"), before.subarray(3)]);
    expect(Buffer.from((await sandbox.readBytes("latin")) ?? [])).toEqual(after);
    expect(((await sandbox.stat("latin"))?.mode ?? 0) & 0o777).toBe(0o751);
    await tools.write.run({ path: "latin", content: "#!/bin/sh\n" });
    expect(((await sandbox.stat("latin"))?.mode ?? 0) & 0o777).toBe(0o751);
  });

  it("don't show a binary file as text, or nothing at all", async () => {
    await sandbox.writeFile("image", Buffer.from("\x89PNG\r\n\x1a\n\0\0", "latin1"));
    expect(await tools.read.run({ path: "image" })).toBe(
      "image is a binary file of 10 bytes; look into it with a command",
    );
    await sandbox.writeFile("empty", "");
    expect(await tools.read.run({ path: "empty" })).toBe("[the file is empty]");
    await sandbox.writeFile("short", "one\ntwo\n");
    expect(await tools.read.run({ path: "short", start_line: 2 })).toBe("two\n[lines 2 to 2 of 2]");
    expect(await tools.read.run({ path: "short", start_line: 3 })).toMatch(/^invalid_argument: .*short has 2 lines/);
  });
});

import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { guestBinary } from "../../../src/sandbox/guest/binary.js";
import { BodyWriter, encodeFrame, REQUEST } from "../../../src/sandbox/guest/frames.js";
import { unsqueeze } from "../../../src/sandbox/guest/unsqueeze.js";
import { until } from "../../support/guest/plain-guest.js";

let scratch: string;
beforeEach(() => {
  scratch = mkdtempSync(join(tmpdir(), "glovebox-armour-"));
});
afterEach(() => rmSync(scratch, { recursive: true, force: true }));

/** A command that leaves a mark each time it runs. */
function order(script: string): Buffer {
  const body = new BodyWriter().u8(0).u16(0).u16(0).u32(0).string("").strings(["/bin/sh", "-c", script]).strings([]);
  return encodeFrame(0, REQUEST.start, 1, body.pieces) as Buffer;
}

function line(number: number, bytes: Uint8Array): string {
  return `G${number} ${bytes.length} ${Buffer.from(bytes).toString("base64")}\n`;
}

/** Starts the guest behind lines, says something, and gives what it said once that holds. */
async function speak(text: string, isDone: (said: string) => boolean): Promise<string> {
  const child = spawn(guestBinary(), ["serve-text", scratch], { stdio: ["pipe", "pipe", "inherit"] });
  let said = "";
  child.stdout.on("data", (chunk: Buffer) => {
    said += chunk;
  });
  child.stdin.write(text);
  await until(() => isDone(said));
  child.stdin.write("Q\n");
  await new Promise((resolve) => child.on("close", resolve));
  return said;
}

function bytesIn(said: string): Buffer {
  const parts = said.split("\n").flatMap((each) => {
    const [, size, text] = /^[gz]\d+ (?:(\d+) )?(.*)$/.exec(each) ?? [];
    if (text === undefined) return [];
    const bytes = Buffer.from(text, "base64");
    return [size === undefined ? bytes : (unsqueeze(bytes, Number(size)) ?? Buffer.from("broken"))];
  });
  return Buffer.concat(parts);
}

describe("lines", () => {
  test("what comes twice is taken once, what is broken is passed over, the end is said", async () => {
    const frame = order("printf x >> runs; printf done");
    const [first, second] = [line(0, frame.subarray(0, 20)), line(1, frame.subarray(20))];
    const noise = [
      "",
      "hello",
      "G",
      "G0",
      "G9 3 AAAA",
      "G0 5 AAAA",
      `G0 20 ${"*".repeat(28)}`,
      first.slice(0, 15),
    ].join("\n");
    const said = await speak(`${noise}\n${first}${first}${second}${second}${first}`, (text) =>
      bytesIn(text).includes("done"),
    );
    expect(readFileSync(join(scratch, "runs"), "utf8")).toBe("x");
    expect(said.endsWith("\nx\n")).toBe(true);
    expect([...said.matchAll(/^[gz](\d+) /gm)].map(([, number]) => Number(number))).toEqual(
      Array.from({ length: said.split("\n").length - 2 }, (_, index) => index),
    );
  });

  test.each([
    ["zeros", Buffer.alloc(200_000)],
    ["text", Buffer.from("a line of a log that is much like the next one\n".repeat(4_000))],
    ["noise", Buffer.from(Array.from({ length: 200_000 }, (_, i) => (Math.imul(i + 1, 2_654_435_761) >>> 13) & 255))],
    ["few", Buffer.from("ab")],
  ])("%s arrive as they are", async (_name, content) => {
    writeFileSync(join(scratch, "content"), content);
    const said = await speak(line(0, order("cat content")), (text) => bytesIn(text).length > content.length + 45);
    // Frames have heads between them, so the content is looked for with those taken out.
    const body = bytesIn(said);
    const out: Buffer[] = [];
    for (let at = 0; at < body.length; ) {
      const length = body.readUInt32LE(at);
      if (body[at + 8] === 0x82) out.push(body.subarray(at + 13, at + 13 + length));
      at += 13 + length;
    }
    expect(Buffer.concat(out).equals(content)).toBe(true);
  });
});

describe("unsqueeze", () => {
  test.each([
    ["an offset before the beginning", [0x10, 65, 9, 0], 10],
    ["more literals than there are", [0xf0, 200], 300],
    ["more bytes than were said", [0x30, 65, 66, 67], 2],
    ["fewer bytes than were said", [0x30, 65, 66, 67], 4],
    ["an offset of nothing", [0x10, 65, 0, 0], 5],
    ["a block that is too large", [0x10, 65], 70_000],
  ])("refuses %s", (_what, bytes, size) => {
    expect(unsqueeze(Uint8Array.from(bytes), size)).toBeUndefined();
  });

  test("repeats what overlaps itself", () => {
    expect(unsqueeze(Uint8Array.from([0x24, 97, 98, 2, 0, 0x10, 99]), 11)?.toString()).toBe("ababababab" + "c");
  });
});

import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import type { Socket } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { GuestChannel } from "../../../src/sandbox/guest/channel.js";
import { GuestFiles } from "../../../src/sandbox/guest/guest-files.js";
import { startCommand } from "../../../src/sandbox/guest/guest-process.js";
import { text } from "../../support/guest/plain-guest.js";
import { createScratch, type Scratch } from "../../support/scratch.js";

const GUEST = join(fileURLToPath(new URL("../../..", import.meta.url)), "guest/bin/linux-arm64/glovebox-guest");
const QEMU = "/usr/bin/qemu-aarch64-static";
const COMPILER = "/usr/bin/aarch64-linux-gnu-gcc";
const PROGRAM = `
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int count, char **words) {
  if (count > 1 && strcmp(words[1], "openat2") == 0) return syscall(437, -1, "", 0, 0) < 0 && errno == ENOSYS;
  char input[4096];
  long got = read(0, input, sizeof input);
  printf("%s in %s, %ld bytes in\\n", count > 1 ? words[1] : "nothing", getcwd(input, sizeof input), got);
  fprintf(stderr, "and an error\\n");
  return 7;
}
`;

let scratch: Scratch;
let program: string;
let missing: string | undefined;

beforeAll(() => {
  scratch = createScratch();
  program = join(scratch.path, "program");
  missing = [GUEST, QEMU, COMPILER].find((path) => !existsSync(path));
  if (missing !== undefined) return;
  writeFileSync(`${program}.c`, PROGRAM);
  execFileSync(COMPILER, ["-static", "-o", program, `${program}.c`]);
});
afterAll(() => scratch.remove());

describe("the guest for arm64", () => {
  it("is a program for arm64 that needs no library", ({ skip }) => {
    if (missing !== undefined) skip(`there is no ${missing}`);
    const elf = readFileSync(GUEST);
    expect([elf.toString("latin1", 1, 4), elf.readUInt8(4), elf.readUInt16LE(18)]).toEqual(["ELF", 2, 183]);
    const [table, size, count] = [Number(elf.readBigUInt64LE(32)), elf.readUInt16LE(54), elf.readUInt16LE(56)];
    const kinds = Array.from({ length: count }, (_, n) => elf.readUInt32LE(table + n * size));
    // 1 is a part to load, 3 the name of a program that would load libraries.
    expect([kinds.includes(1), kinds.includes(3)]).toEqual([true, false]);
  });

  it("runs one program, with its input, its output and its exit code", async ({ skip }) => {
    if (missing !== undefined) skip(`there is no ${missing}`);
    // The emulator is named once more: the kernel of this machine would not start the program by itself.
    const child = spawn(QEMU, [GUEST, "run", "--", QEMU, program, "one"], { cwd: scratch.path, env: {} });
    child.stdin.end("hello");
    const [stdout, stderr, code] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      new Promise((resolve) => child.once("exit", resolve)),
    ]);
    expect([stdout, stderr, code]).toEqual([`one in ${scratch.path}, 5 bytes in\n`, "and an error\n", 7]);
  });

  it("says hello and runs commands over its channel", async ({ skip }) => {
    if (missing !== undefined) skip(`there is no ${missing}`);
    await served(async (channel, root) => {
      expect(await channel.hello).toEqual({ namespaced: false, complaint: "", edition: 4 });
      const spec = { argv: [QEMU, program, "two"], cwd: root, env: {}, stdin: "pipe" } as const;
      const process = await startCommand(channel, spec, "");
      await process.writeStdin(Buffer.from("abc"));
      await process.closeStdin();
      const [stdout, stderr] = await Promise.all([text(process.stdout), text(process.stderr)]);
      expect([stdout, stderr]).toEqual([`two in ${root}, 3 bytes in\n`, "and an error\n"]);
      expect(await process.wait()).toMatchObject({ exitCode: 7 });
      const absent = await startCommand(channel, { ...spec, argv: ["/no/such/program"] }, "");
      expect(await absent.wait()).toMatchObject({ exitCode: 127 });
    });
  });

  it("writes, lists and reads files over its channel", async ({ skip }) => {
    if (missing !== undefined) skip(`there is no ${missing}`);
    if (emulatorLacksOpenat2()) skip("this qemu has no openat2, without which the guest opens no file");
    await served(async (channel) => {
      const files = new GuestFiles(channel, (path) => path);
      await files.write("a.txt", Buffer.from("bytes"), 0o644);
      expect([await files.list(""), String(await files.read("a.txt"))]).toEqual([["a.txt"], "bytes"]);
    });
  });
});

async function served(work: (channel: GuestChannel, root: string) => Promise<void>): Promise<void> {
  const root = mkdtempSync(join(scratch.path, "root-"));
  const stdio = ["ignore", "ignore", "ignore", "pipe"] as const;
  const child = spawn(QEMU, [GUEST, "serve", root], { stdio: [...stdio], cwd: "/", env: {} });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  const channel = new GuestChannel(child.stdio[3] as Socket);
  try {
    await work(channel, root);
  } finally {
    channel.close();
    await ended;
  }
}

function emulatorLacksOpenat2(): boolean {
  try {
    execFileSync(QEMU, [program, "openat2"]);
    return false;
  } catch {
    return true;
  }
}

import { execFileSync, spawn } from "node:child_process";
import { chmodSync, chownSync, copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { guestBinary } from "../../../src/sandbox/guest/binary.js";
import { GuestChannel } from "../../../src/sandbox/guest/channel.js";
import { startCommand } from "../../../src/sandbox/guest/guest-process.js";
import { processesWith, text, uniqueSeconds, until } from "../../support/guest/plain-guest.js";

const NOBODY = 65_534;
/** What `sudo -n` does on a machine whose user may do all. */
const SUDO = `#define _GNU_SOURCE
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv) {
  char **rest = argv + (argc > 1 && strcmp(argv[1], "-n") == 0 ? 2 : 1);
  if (setresgid(0, 0, 0) != 0 || setresuid(0, 0, 0) != 0) return 1;
  execvp(rest[0], rest);
  return 127;
}
`;
const isRoot = process.getuid?.() === 0;

describe("a command that has made itself another user", () => {
  if (!isRoot) {
    test("ends with its call", ({ skip }) => skip("only root can make a program that gives root away"));
    return;
  }
  let scratch: string;
  beforeAll(() => {
    scratch = mkdtempSync(join(tmpdir(), "glovebox-other-user-"));
    chmodSync(scratch, 0o755);
    for (const name of ["with", "without", "root"]) mkdirSync(join(scratch, name));
    chownSync(join(scratch, "root"), NOBODY, NOBODY);
    copyFileSync(guestBinary(), join(scratch, "guest"));
    chmodSync(join(scratch, "guest"), 0o755);
    writeFileSync(join(scratch, "sudo.c"), SUDO);
    for (const place of ["with/sudo", "without/become"]) {
      execFileSync("gcc", ["-o", join(scratch, place), join(scratch, "sudo.c")]);
      chmodSync(join(scratch, place), 0o4755);
    }
  });
  afterAll(() => rmSync(scratch, { recursive: true, force: true }));

  /** A guest of an ordinary user whose PATH begins with this folder; gives its channel and its end. */
  function serve(
    folder: string,
    flags: readonly string[] = ["--own-machine"],
  ): { channel: GuestChannel; stop(): Promise<void> } {
    const child = spawn(join(scratch, "guest"), ["serve", ...flags, join(scratch, "root")], {
      ...{ uid: NOBODY, gid: NOBODY, stdio: ["ignore", "ignore", "inherit", "pipe"], cwd: "/" },
      env: { PATH: `${join(scratch, folder)}:/usr/bin:/bin` },
    });
    const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
    const channel = new GuestChannel(child.stdio[3] as Socket);
    return {
      channel,
      stop: async () => {
        channel.close();
        await gone;
      },
    };
  }

  test.each([
    ["itself", (s: string) => `exec sudo sleep ${s}`],
    ["in the background", (s: string) => `sudo setsid sleep ${s} & sleep ${s}`],
    ["with children", (s: string) => `sudo sh -c 'setsid sleep ${s} & (setsid sleep ${s} &); sleep ${s}'`],
  ])("ends at the deadline as any other where that user can be had without a word: %s", async (_what, script) => {
    const { channel, stop } = serve("with");
    const seconds = uniqueSeconds();
    const path = `${join(scratch, "with")}:/usr/bin:/bin`;
    const spec = { argv: ["sh", "-c", script(seconds)], cwd: "/", env: { PATH: path }, stdin: "none" } as const;
    const command = await startCommand(channel, spec, "");
    await until(() => processesWith(seconds).length > 0);
    await command.kill("SIGKILL");
    expect((await command.wait()).exitCode).toBe(137);
    expect(processesWith(seconds)).toEqual([]);
    await stop();
  });

  test.each([
    ["cannot be had", "without", ["--own-machine"]],
    ["is not to be asked for, the machine being somebody's", "with", []],
  ])(
    "where it %s the call ends all the same, with what else it started, and the guest goes on",
    async (_why, folder, flags) => {
      const { channel, stop } = serve(folder, flags);
      const [theirs, ours] = [uniqueSeconds(), uniqueSeconds()];
      const become = join(scratch, "without", "become");
      const script = `${become} -n sleep ${theirs} & setsid sleep ${ours} & echo up; sleep ${ours}`;
      const env = { PATH: "/usr/bin:/bin" };
      const command = await startCommand(
        channel,
        { argv: ["sh", "-c", script], cwd: "/", env, stdin: "none", timeout: 2_000 },
        "",
      );
      try {
        expect(await text(command.stdout)).toBe("up\n");
        expect((await command.wait()).exitCode).toBe(137);
        expect(processesWith(ours)).toEqual([]);
        expect(processesWith(theirs)).toHaveLength(1);
        const next = await startCommand(channel, { argv: ["true"], cwd: "/", env, stdin: "none" }, "");
        expect((await next.wait()).exitCode).toBe(0);
      } finally {
        for (const pid of processesWith(theirs)) process.kill(pid, "SIGKILL");
        await stop();
      }
    },
  );
});

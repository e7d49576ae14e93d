import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { guestBinary, setGuestPath } from "../../../src/sandbox/guest/binary.js";
import { openSandbox } from "../../../src/sandbox/open.js";
import type { Sandbox } from "../../../src/sandbox/types.js";
import { describeUnless } from "../../support/describe-unless.js";
import { expectRefused } from "../../support/refused.js";

const OTHER = process.arch === "x64" ? "arm64" : "x64";
const reason = process.platform === "linux" ? undefined : "the guest is built on Linux only";

describeUnless(reason, "GLOVEBOX_GUEST", {}, () => {
  let place: string;
  let program: string;
  beforeEach(() => {
    place = mkdtempSync(join(tmpdir(), "glovebox-guest-"));
    program = join(place, "guest");
    copyFileSync(guestBinary(), program);
  });
  afterEach(() => {
    delete process.env["GLOVEBOX_GUEST"];
    rmSync(place, { recursive: true, force: true });
  });

  test("names the program, which is the one that sandboxes then run", async () => {
    process.env["GLOVEBOX_GUEST"] = program;
    const open = (): Promise<Sandbox> => openSandbox({ backend: "local", isolation: "none" });
    const sandbox = await open();
    expect((await sandbox.shell("echo it runs")).stdout).toBe("it runs\n");
    await sandbox.teardown();
    writeFileSync(program, Buffer.concat([Buffer.alloc(18), Buffer.from([process.arch === "x64" ? 62 : 183, 0])]));
    await expect(open()).rejects.toMatchObject({ code: "backend_lost" });
  });

  test("names the directory that has one for each machine", () => {
    const own = guestBinary();
    const folder = join(place, basename(dirname(own)));
    mkdirSync(folder);
    copyFileSync(own, join(folder, basename(own)));
    process.env["GLOVEBOX_GUEST"] = place;
    expect(guestBinary()).toBe(join(folder, basename(own)));
    expect(() => guestBinary(OTHER)).toThrow(`The guest for linux-${OTHER} is missing: ${place}`);
  });

  test("names no program for another machine", () => {
    process.env["GLOVEBOX_GUEST"] = program;
    expect(() => guestBinary(OTHER)).toThrow(
      expect.objectContaining({ code: "invalid_argument", message: expect.stringContaining(`for linux-${OTHER}`) }),
    );
  });

  test("that names what may not be run says how it may", () => {
    chmodSync(program, 0o644);
    process.env["GLOVEBOX_GUEST"] = program;
    expect(() => guestBinary()).toThrow(
      expect.objectContaining({ code: "missing_dependency", hint: `chmod +x ${program}` }),
    );
  });

  test("is refused when it is relative, and so is a path that is set", async () => {
    process.env["GLOVEBOX_GUEST"] = "guest/bin";
    await expectRefused(openSandbox({ backend: "local" }), "invalid_argument", "GLOVEBOX_GUEST", '"guest/bin"');
    for (const path of ["guest/bin", "", undefined, 7]) {
      expect(() => setGuestPath(path as string)).toThrow(expect.objectContaining({ code: "invalid_argument" }));
    }
  });
});

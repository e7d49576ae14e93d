import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { whyNoEngine } from "../../scripts/docker-engine.mjs";
import { DEBIAN, FAILED_IMAGES, whyNoImage } from "../../scripts/image-cache.mjs";
import { describeUnless } from "../support/describe-unless.js";
import { setEnv } from "../support/environment.js";
import { until } from "../support/guest/plain-guest.js";
import { processesWith } from "../support/processes/host-processes.js";
import { createScratch, type Scratch } from "../support/scratch.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const WHOLE = ["debian-2.tar", "lock"];

/** A builder in a process of its own. The debootstrap that it finds does as it is told in a file. */
const BUILD = `
  const { DEBIAN, ensureArchive } = await import("./scripts/image-cache.mjs");
  await ensureArchive(DEBIAN, console.log).then(
    (archive) => console.log("archive " + archive),
    (error) => console.log("failed " + error.message),
  );
`;

describeUnless(whyNoEngine(), "the cache of images", {}, () => {
  let scratch: Scratch;
  let cache: string;
  let behaviour: string;
  const started: ChildProcess[] = [];
  beforeEach(() => {
    scratch = createScratch();
    cache = join(scratch.path, "cache", "glovebox", "test-images");
    behaviour = join(scratch.path, "behaviour");
    const bin = join(scratch.path, "bin");
    mkdirSync(bin);
    const program = join(bin, "debootstrap");
    // The last argument is the root. It mounts something there, as the real one does.
    const script = `#!/bin/sh
for root; do :; done
echo "$$" >> ${scratch.path}/builds
mkdir "$root/proc" && mount -t proc proc "$root/proc" || exit 1
echo "I: Retrieving bash 5"; echo "I: Retrieving git 2"; echo "I: Unpacking bash..."
. ${behaviour}
umount "$root/proc"
echo whole > "$root/file"
`;
    writeFileSync(program, script);
    chmodSync(program, 0o755);
  });
  afterEach(() => {
    for (const child of started.splice(0)) child.kill("SIGKILL");
    scratch.remove();
  });

  function startBuilder(): { child: ChildProcess; lines: string[]; ended: Promise<unknown> } {
    const env = {
      ...process.env,
      PATH: `${join(scratch.path, "bin")}${delimiter}${process.env["PATH"]}`,
      XDG_CACHE_HOME: join(scratch.path, "cache"),
    };
    const child = spawn(process.execPath, ["--input-type=module", "-e", BUILD], { cwd: root, env });
    started.push(child);
    const lines: string[] = [];
    child.stdout.setEncoding("utf8").on("data", (text: string) => lines.push(...text.trimEnd().split("\n")));
    return { child, lines, ended: once(child, "close") };
  }

  test("shows each phase, and leaves nothing but the archive", async () => {
    writeFileSync(behaviour, "");
    const { lines, ended } = startBuilder();
    await ended;
    expect(lines).toEqual([
      "retrieving packages",
      "unpacking packages",
      "packing",
      `archive ${join(cache, "debian-2.tar")}`,
    ]);
    expect(readdirSync(cache).sort()).toEqual(WHOLE);
  });

  test.each(["SIGKILL", "SIGTERM"] as const)(
    "a build that is ended by %s leaves no process, no mount and no archive, and the next one builds it",
    async (signal) => {
      writeFileSync(behaviour, "sleep 600");
      const killed = startBuilder();
      await until(() => killed.lines.includes("unpacking packages"));
      killed.child.kill(signal);
      await killed.ended;
      await until(() => processesWith(scratch.path).length === 0);
      expect(existsSync(join(cache, "debian-2.tar"))).toBe(false);
      expect(readFileSync("/proc/self/mountinfo", "utf8")).not.toContain(scratch.path.concat("/cache"));
      writeFileSync(behaviour, "");
      const next = startBuilder();
      await next.ended;
      expect(next.lines.at(-1)).toBe(`archive ${join(cache, "debian-2.tar")}`);
      expect(readdirSync(cache).sort()).toEqual(WHOLE);
    },
  );

  test("two that need it at one time build it once", async () => {
    writeFileSync(behaviour, "sleep 1");
    const builders = [startBuilder(), startBuilder()];
    await Promise.all(builders.map(({ ended }) => ended));
    for (const { lines } of builders) expect(lines.at(-1)).toBe(`archive ${join(cache, "debian-2.tar")}`);
    expect(readFileSync(join(scratch.path, "builds"), "utf8").trim().split("\n")).toHaveLength(1);
  });

  test("a build that fails says why, and leaves nothing", async () => {
    writeFileSync(behaviour, 'echo "E: no such mirror"; exit 3');
    const { lines, ended } = startBuilder();
    await ended;
    expect(lines.at(-1)).toMatch(
      /^failed glovebox-test\/debian:1 could not be built: debootstrap ended with 3: .*no such mirror$/,
    );
    expect(readdirSync(cache)).toEqual(["lock"]);
  });

  test("what failed in the set-up is the reason why tests are not run", () => {
    const failed = JSON.stringify({ [DEBIAN]: "no such mirror" });
    const restore = setEnv({ XDG_CACHE_HOME: join(scratch.path, "cache"), [FAILED_IMAGES]: failed });
    try {
      expect(whyNoImage(DEBIAN)).toBe("no such mirror");
      mkdirSync(cache, { recursive: true });
      writeFileSync(join(cache, "debian-2.tar"), "");
      expect(whyNoImage(DEBIAN)).toBeUndefined();
    } finally {
      restore();
    }
  });
});

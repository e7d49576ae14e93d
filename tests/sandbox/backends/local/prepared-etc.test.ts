import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, utimesSync } from "node:fs";
import { basename, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { runtimeDir } from "../../../../src/machine/home.js";
import { currentOwner, ownerTag } from "../../../../src/machine/owner.js";
import { recordEtc, trimEtc } from "../../../../src/sandbox/backends/local/etc-cache.js";
import { createMemory } from "../../../../src/sandbox/backends/local/memory.js";
import { prepareEtc } from "../../../../src/sandbox/backends/local/prepared-etc.js";
import { createLocalSandbox } from "../../../../src/sandbox/backends/local.js";
import { reap } from "../../../../src/sandbox.js";
import { createScratch, type Scratch } from "../../../support/scratch.js";

let scratch: Scratch;
let umask: number;

beforeEach(() => {
  scratch = createScratch({ ownEtc: true });
  umask = process.umask();
});
afterEach(() => {
  process.umask(umask);
  scratch.remove();
});

describe.runIf(process.platform === "linux")("the /etc of a sandbox", () => {
  it("has what was made for it, and of the host's nothing about users, secrets or mounts", () => {
    const etc = prepareEtc({ passwd: "root:x:0:0::/:\n", hosts: "::1 localhost\n" });
    expect(readFileSync(join(etc, "passwd"), "utf8")).toBe("root:x:0:0::/:\n");
    const names = readdirSync(etc);
    expect(names).toEqual(expect.arrayContaining(["passwd", "hosts"]));
    for (const name of ["shadow", "gshadow", "sudoers", "ssh", "machine-id", "fstab", "resolv.conf", "group"]) {
      expect(names).not.toContain(name);
    }
    if (existsSync(join(etc, "ssl"))) expect(readdirSync(join(etc, "ssl"))).not.toContain("private");
    const certificates = "ssl/certs/ca-certificates.crt";
    if (existsSync(join("/etc", certificates))) {
      expect(readFileSync(join(etc, certificates))).toEqual(readFileSync(join("/etc", certificates)));
    }
  });

  it("can be read by every user, whatever the mask of this process", () => {
    process.umask(0o077);
    const etc = prepareEtc({ passwd: "", "nsswitch.conf": "" });
    for (const entry of readdirSync(etc, { withFileTypes: true, recursive: true })) {
      if (entry.isSymbolicLink()) continue;
      const { mode } = statSync(join(entry.parentPath, entry.name));
      expect([entry.name, mode & 0o777]).toEqual([entry.name, entry.isDirectory() ? 0o755 : 0o644]);
    }
    expect(statSync(etc).mode & 0o777).toBe(0o755);
  });

  it("is one for all that ask for the same, another for others, and made anew when it is gone", () => {
    const one = prepareEtc({ passwd: "a" });
    expect(prepareEtc({ passwd: "a" })).toBe(one);
    const other = prepareEtc({ passwd: "a" }, ["resolv.conf"]);
    expect(other).not.toBe(one);
    expect(readFileSync(join(other, "resolv.conf"), "utf8")).toBe("");
    process.env["GLOVEBOX_HOME"] = join(scratch.path, "second");
    expect(readFileSync(join(prepareEtc({ passwd: "a" }), "passwd"), "utf8")).toBe("a");
  });

  it("takes away what a process that died in the middle left, and nothing of a live one", async () => {
    const parent = join(scratch.home, "etc");
    const first = prepareEtc({ passwd: "a" });
    const dead = join(parent, `.new.${ownerTag({ ...currentOwner(), startTime: "1" })}.a`);
    const live = join(parent, `.new.${ownerTag()}.b`);
    for (const path of [dead, live]) mkdirSync(path);
    prepareEtc({ passwd: "b" });
    await expect.poll(() => existsSync(dead)).toBe(false);
    expect([existsSync(live), existsSync(first)]).toEqual([true, true]);
  });
});

/** Without the files that sandboxes share. */
function directoriesIn(parent: string): string[] {
  return readdirSync(parent)
    .filter((name) => !name.startsWith("."))
    .sort();
}

describe.runIf(process.platform === "linux")("a prepared /etc that nothing uses", () => {
  const age = (path: string): void => utimesSync(path, 1_000_000_000, 1_000_000_000);

  it("goes by itself after a day; the one of a running sandbox stays", async () => {
    await using _sandbox = await createLocalSandbox();
    const parent = join(scratch.home, "etc");
    const [own = ""] = directoriesIn(parent);
    const [old, recent] = [prepareEtc({ passwd: "old" }), prepareEtc({ passwd: "recent" })];
    for (const path of [join(parent, own), old]) age(path);
    await trimEtc();
    expect(directoriesIn(parent)).toEqual([own, basename(recent)].sort());
  });

  it("goes with reap --cache, the one of a running sandbox and one that was just asked for stay", async () => {
    const sandbox = await createLocalSandbox();
    try {
      const parent = join(scratch.home, "etc");
      const [own = ""] = directoriesIn(parent);
      const old = prepareEtc({ passwd: "old" });
      const asked = prepareEtc({ passwd: "asked" });
      for (const path of [join(parent, own), old, asked]) age(path);
      prepareEtc({ passwd: "asked" });
      expect((await reap({ cache: 0 })).cache).toEqual([old]);
      expect(directoriesIn(parent)).toEqual([own, basename(asked)].sort());
      expect((await sandbox.exec({ argv: ["cat", "/etc/hostname"] })).stdout).toBe("glovebox\n");
      await sandbox.teardown();
      age(join(parent, own));
      expect((await reap({ cache: 0 })).cache).toEqual([join(parent, own)]);
    } finally {
      await sandbox.teardown();
    }
  });
});

describe.runIf(process.platform === "linux")("what sandboxes on one /etc share", () => {
  const noteOf = (id: string): string => join(runtimeDir(id), "etc");

  it("is one file with a name for each, which keeps what it says when one of them gets another /etc", () => {
    const [one, other] = [prepareEtc({ passwd: "one" }), prepareEtc({ passwd: "other" })];
    const [first, second] = ["a".repeat(16), "b".repeat(16)];
    for (const id of [first, second]) {
      mkdirSync(runtimeDir(id), { recursive: true });
      recordEtc(id, one);
    }
    expect(statSync(noteOf(first)).ino).toBe(statSync(noteOf(second)).ino);
    recordEtc(first, other);
    expect([first, second].map((id) => readFileSync(noteOf(id), "utf8"))).toEqual([other, one]);
  });
});

describe("what is remembered", () => {
  it("is made once for one key after another, and again for another key", () => {
    const remember = createMemory<number>();
    let made = 0;
    const ask = (key: string): number => remember(key, () => ++made);
    expect([ask("a"), ask("a"), ask("b"), ask("b"), ask("a")]).toEqual([1, 1, 2, 2, 3]);
  });
});

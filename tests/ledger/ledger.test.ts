import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  addResource,
  createRecord,
  listRecords,
  readRecord,
  removeRecord,
  sweepLedger,
  updateRecord,
} from "../../src/ledger/records.js";
import { gloveboxHome, runtimeDir } from "../../src/machine/home.js";
import { currentOwner, isOwnerAlive, type Owner, ownerTag } from "../../src/machine/owner.js";
import { createScratch, type Scratch } from "../support/scratch.js";

let scratch: Scratch;
beforeEach(() => {
  scratch = createScratch({ ownEtc: true });
});
afterEach(() => scratch.remove());

const fields = { id: "one", backend: "local", workDir: "/tmp/harness-one" };
const recordPath = (id = "one"): string => join(runtimeDir(id), "record.json");
const mode = (path: string): number => statSync(path).mode & 0o777;

describe("home", () => {
  test("is private whatever the umask is", () => {
    const before = process.umask(0);
    try {
      expect(mode(gloveboxHome())).toBe(0o700);
    } finally {
      process.umask(before);
    }
  });

  test("an open one is closed", () => {
    mkdirSync(scratch.home);
    chmodSync(scratch.home, 0o777);
    expect(mode(gloveboxHome())).toBe(0o700);
  });

  test("an open one that holds anything else is refused, and stays as it is", () => {
    mkdirSync(join(scratch.home, "photographs"), { recursive: true });
    chmodSync(scratch.home, 0o755);
    const refusal = expect.objectContaining({
      code: "invalid_argument",
      hint: expect.stringContaining("GLOVEBOX_HOME"),
    });
    expect(() => gloveboxHome()).toThrow(refusal);
    expect(() => runtimeDir("one")).toThrow(refusal);
    expect(mode(scratch.home)).toBe(0o755);
    expect(readdirSync(scratch.home)).toEqual(["photographs"]);
  });

  test("the user's home is refused", () => {
    const before = process.env["HOME"];
    chmodSync(scratch.path, 0o700);
    process.env["HOME"] = scratch.path;
    try {
      for (const home of [scratch.path, `${scratch.path}/`, join(scratch.path, "a", "..")]) {
        process.env["GLOVEBOX_HOME"] = home;
        expect(() => runtimeDir("one"), home).toThrow(expect.objectContaining({ code: "invalid_argument" }));
      }
    } finally {
      if (before === undefined) delete process.env["HOME"];
      else process.env["HOME"] = before;
    }
    expect(readdirSync(scratch.path)).toEqual([]);
  });

  test("one that cannot be made is refused at once, with what mends it", () => {
    writeFileSync(join(scratch.path, "file"), "");
    const kinds = [
      ["/proc/glovebox/home", "not_found"],
      [join(scratch.path, "file"), "conflict"],
      [join(scratch.path, "file", "home"), "invalid_path"],
    ] as const;
    for (const [home, code] of kinds) {
      process.env["GLOVEBOX_HOME"] = home;
      const hint = expect.stringContaining("GLOVEBOX_HOME");
      expect(() => gloveboxHome(), home).toThrow(expect.objectContaining({ code, hint }));
    }
  });

  test("without one that is chosen, HOME must be absolute", () => {
    const before = process.env["HOME"];
    process.env["GLOVEBOX_HOME"] = "";
    process.env["HOME"] = "relative";
    try {
      expect(() => gloveboxHome()).toThrow(expect.objectContaining({ code: "invalid_argument" }));
    } finally {
      if (before === undefined) delete process.env["HOME"];
      else process.env["HOME"] = before;
    }
  });

  test.runIf(process.getuid?.() === 0)("somebody else's is refused", async () => {
    const { chownSync } = await import("node:fs");
    mkdirSync(scratch.home);
    chownSync(scratch.home, 12345, 12345);
    expect(() => gloveboxHome()).toThrow(expect.objectContaining({ code: "permission_denied" }));
  });

  test.runIf(process.getuid?.() === 0)("somebody else's in its place, later, is refused", async () => {
    const { chownSync } = await import("node:fs");
    expect(runtimeDir("one")).toBe(join(scratch.home, "sandboxes", "one"));
    rmSync(scratch.home, { recursive: true });
    expect(runtimeDir("one")).toBe(join(scratch.home, "sandboxes", "one"));
    rmSync(scratch.home, { recursive: true });
    mkdirSync(scratch.home);
    chownSync(scratch.home, 12345, 12345);
    expect(() => runtimeDir("one")).toThrow(expect.objectContaining({ code: "permission_denied" }));
  });

  test("must be absolute", () => {
    process.env["GLOVEBOX_HOME"] = "here";
    expect(() => gloveboxHome()).toThrow(expect.objectContaining({ code: "invalid_argument" }));
  });

  test.each(["", "..", "a/b", "../../etc", "UPPER", "-ab", "ab", "a".repeat(42), "a\0b", "abc\n"])(
    "%j is no id and never a path",
    async (id) => {
      expect(() => runtimeDir(id)).toThrow(expect.objectContaining({ code: "invalid_argument" }));
      await expect(createRecord({ ...fields, id })).rejects.toMatchObject({ code: "invalid_argument" });
    },
  );
});

describe("owner", () => {
  test("this process is alive", () => {
    expect(isOwnerAlive(currentOwner())).toBe("alive");
  });

  test("another start time under the same pid is dead", () => {
    expect(isOwnerAlive({ ...currentOwner(), startTime: "1" })).toBe("dead");
  });

  test("a pid that nobody has is dead", () => {
    expect(isOwnerAlive({ ...currentOwner(), pid: 2 ** 22 + 1 })).toBe("dead");
  });

  test.each<[string, Partial<Owner>, string]>([
    ["an earlier boot", { bootId: "00000000-0000-0000-0000-000000000000" }, "dead"],
    ["an unknown boot", { bootId: "" }, "foreign"],
    ["another PID namespace", { pidNs: "pid:[1]" }, "foreign"],
    ["another machine", { host: "elsewhere", bootId: "00000000-0000-0000-0000-000000000000" }, "foreign"],
  ])("%s", (_, change, state) => {
    expect(isOwnerAlive({ ...currentOwner(), ...change })).toBe(state);
  });

  test("a zombie is dead", async () => {
    const { spawn } = await import("node:child_process");
    // The shell becomes a program that never waits for its child, which stays a zombie once it ends. Not before: a shell would.
    const parent = spawn("/bin/sh", ["-c", "cat <&3 & echo $!; exec sleep 60 3<&-"], {
      stdio: ["ignore", "pipe", "inherit", "pipe"],
    });
    try {
      const pid = Number(await new Promise((resolve) => parent.stdout?.once("data", resolve)));
      await expect.poll(() => readFileSync(`/proc/${parent.pid}/comm`, "utf8")).toBe("sleep\n");
      parent.stdio[3]?.destroy();
      const stat = (): string => readFileSync(`/proc/${pid}/stat`, "utf8");
      await expect.poll(stat).toContain(") Z ");
      const startTime = stat().split(" ")[21] ?? "";
      expect(isOwnerAlive({ ...currentOwner(), pid, startTime })).toBe("dead");
    } finally {
      parent.kill("SIGKILL");
    }
  });
});

describe("records", () => {
  test("a record is there, private and owned, before anything else", async () => {
    const record = await createRecord({ ...fields, reopen: { repo: "/src" } });
    expect(record).toMatchObject({ version: 1, state: "creating", owner: currentOwner(), resources: [] });
    expect(await readRecord("one")).toEqual(record);
    expect([mode(recordPath()), mode(runtimeDir("one"))]).toEqual([0o600, 0o700]);
  });

  test("an id in use is a conflict and the first record stays", async () => {
    await createRecord(fields);
    await expect(createRecord({ ...fields, workDir: "/tmp/second" })).rejects.toMatchObject({ code: "conflict" });
    expect((await readRecord("one"))?.workDir).toBe("/tmp/harness-one");
    expect(readdirSync(join(scratch.home, "sandboxes"))).toEqual(["one"]);
  });

  test("resources keep their order, also when added at once", async () => {
    await createRecord(fields);
    const paths = Array.from({ length: 20 }, (_, n) => `/tmp/harness-${n}`);
    await Promise.all(paths.map((path) => addResource("one", { kind: "directory", path })));
    expect((await readRecord("one"))?.resources.map((resource) => resource["path"])).toEqual(paths);
    expect(readdirSync(runtimeDir("one"))).toEqual(["record.json"]);
  });

  test("a field given as undefined is dropped", async () => {
    await createRecord(fields);
    await updateRecord("one", { state: "kept", owner: undefined });
    expect(await readRecord("one")).not.toHaveProperty("owner");
  });

  test("no record: undefined to read, not_found to change, no error to remove", async () => {
    expect(await readRecord("one")).toBeUndefined();
    await expect(updateRecord("one", { state: "ready" })).rejects.toMatchObject({ code: "not_found" });
    await expect(removeRecord("one")).resolves.toBeUndefined();
  });

  test("removing takes the whole runtime directory", async () => {
    await createRecord(fields);
    writeFileSync(join(runtimeDir("one"), "more"), "");
    await removeRecord("one");
    expect(readdirSync(join(scratch.home, "sandboxes"))).toEqual([]);
  });
});

describe("damage", () => {
  test("a record cut at any byte is reported and hides no other", async () => {
    await createRecord(fields);
    await createRecord({ ...fields, id: "two" });
    const whole = readFileSync(recordPath());
    // Without its last line end it is still whole.
    for (let length = 0; length < whole.length - 1; length++) {
      writeFileSync(recordPath(), whole.subarray(0, length));
      const entries = await listRecords();
      expect(entries).toMatchObject([
        { id: "one", damaged: expect.any(String) },
        { id: "two", record: { id: "two" } },
      ]);
    }
    await expect(readRecord("one")).rejects.toMatchObject({ code: "tampered" });
  });

  test.each([
    ["another version", { version: 2 }],
    ["another id", { id: "two" }],
    ["an unknown state", { state: "gone" }],
    ["half an owner", { owner: { pid: 3 } }],
    ["an owner that is a process group", { owner: { ...currentOwner(), pid: -1 } }],
    ["a time that is none", { expiresAt: "soon" }],
    ["resources without a kind", { resources: [{ path: "/" }] }],
  ])("%s is damage", async (_, change) => {
    const record = await createRecord(fields);
    writeFileSync(recordPath(), JSON.stringify({ ...record, ...change }));
    expect(await listRecords()).toEqual([{ id: "one", damaged: expect.any(String) }]);
  });

  test("a temporary file that a crash left hides nothing", async () => {
    const record = await createRecord(fields);
    writeFileSync(`${recordPath()}.1-abc.tmp`, "{");
    expect(await listRecords()).toEqual([{ id: "one", record }]);
  });

  test("a missing record is damage, a stray file is not a sandbox", async () => {
    await createRecord(fields);
    rmSync(recordPath());
    writeFileSync(join(scratch.home, "sandboxes", "Stray.txt"), "");
    expect(await listRecords()).toEqual([{ id: "one", damaged: "record.json is missing" }]);
  });

  test("half-made and half-removed records of dead processes are swept, others stay", async () => {
    await createRecord(fields);
    const parent = join(scratch.home, "sandboxes");
    const [place, pid, start] = ownerTag().split("-");
    const live = `.new-live.${place}-${pid}-${start}.1`;
    const far = `.new-far.0000-${pid}-0000.1`;
    for (const name of [live, far, `.new-dead.${place}-${pid}-0000.1`, ".gone-three.1"]) mkdirSync(join(parent, name));
    await sweepLedger();
    expect(readdirSync(parent).sort()).toEqual([far, live, "one"]);
  });
});

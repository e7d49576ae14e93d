import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { createLocalSandbox } from "../../../src/sandbox/backends/local.js";
import { listSandboxes } from "../../../src/sandbox/reap.js";
import type { Sandbox, SandboxOptions } from "../../../src/sandbox/types.js";
import { expectRefused, LONG } from "../../support/refused.js";
import { createRepository, createScratch, git, type Scratch } from "../../support/scratch.js";

describe("options of a sandbox", () => {
  let scratch: Scratch;
  let repo: string;
  let tmp: string;
  let branches: string;
  const tmpBefore = process.env["TMPDIR"];
  beforeAll(() => {
    scratch = createScratch();
    repo = createRepository(join(scratch.path, "repo"));
    branches = git(repo, "for-each-ref");
    tmp = join(scratch.path, "tmp");
    for (const path of ["tmp", "plain", "plain/sub"]) mkdirSync(join(scratch.path, path));
    writeFileSync(join(scratch.path, "file"), "");
    symlinkSync(homedir(), join(scratch.path, "link-to-home"));
    process.env["TMPDIR"] = tmp;
  });
  afterAll(() => {
    if (tmpBefore === undefined) delete process.env["TMPDIR"];
    else process.env["TMPDIR"] = tmpBefore;
    scratch.remove();
  });
  afterEach(async () => {
    // Whatever was asked for: nothing may be there.
    const runtime = join(scratch.home, "sandboxes");
    expect({
      directories: readdirSync(tmp),
      records: await listSandboxes(),
      runtimes: existsSync(runtime) ? readdirSync(runtime) : [],
      refs: git(repo, "for-each-ref"),
      worktrees: git(repo, "worktree", "list").split("\n").length,
    }).toEqual({ directories: [], records: [], runtimes: [], refs: branches, worktrees: 1 });
  });

  const open = (options: unknown): Promise<Sandbox> => createLocalSandbox(options as SandboxOptions);

  test.each<[unknown, string]>([
    [null, "null"],
    ["repo", "repo"],
    [["repo"], "repo"],
    [7, "7"],
  ])("%j are none", async (options, value) => {
    await expectRefused(open(options), "invalid_argument", "options", value);
  });

  test.each<[string, unknown, string]>([
    ["repo", 7, "7"],
    ["repo", ["a"], "a"],
    ["repo", "--upload-pack=x", "--upload-pack=x"],
    ["repo", "ext::sh -c id", "ext::sh"],
    ["baseDir", {}, "{}"],
    ["workspace", "clone", "clone"],
    ["image", "--privileged", "--privileged"],
    ["id", "../../etc", "../../etc"],
    ["keep", "yes", "yes"],
    ["operationTimeout", -1, "-1"],
    ["operationTimeout", 0, "0"],
    ["operationTimeout", 1.5, "1.5"],
    ["operationTimeout", Number.NaN, "NaN"],
    ["operationTimeout", "1s", "1s"],
    ["runTimeout", -5, "-5"],
    ["maxOutput", -1, "-1"],
    ["maxOutput", Number.POSITIVE_INFINITY, "Infinity"],
    ["env", "A=b", "A=b"],
    ["env", { "A=B": "x" }, "A=B"],
    ["env", { "": "x" }, '""'],
    ["env", { "A\n": "x" }, "A\n"],
    ["env", { A: 7 }, "number"],
    ["env", { A: "a\0b" }, "NUL"],
    ["allow", "ls", "ls"],
    ["allow", [""], '""'],
    ["network", "some", "some"],
    ["network", {}, "{}"],
    ["network", { allow: "all" }, "all"],
    ["network", { allow: ["a b"] }, "a b"],
    ["limits", 7, "7"],
    ["limits", { memory: 0 }, "memory"],
    ["limits", { cpus: 0 }, "cpus"],
    ["limits", { pids: 0 }, "pids"],
    ["limits", { disk: 0 }, "disk"],
    ["limits", { memory: -1 }, "-1"],
    ["limits", { cpus: Number.NaN }, "NaN"],
    ["limits", { pids: 1.5 }, "1.5"],
    ["limits", { memory: "1g" }, "1g"],
    ["limits", { ram: 1 }, "ram"],
    ["isolation", "some", "some"],
    ["isolation", false, "false"],
    ["mounts", "/srv", "/srv"],
    ["mounts", [{ source: "/srv", target: "here" }], "here"],
    ["mounts", [{ source: "/srv", readonly: true }], "readonly"],
    ["mounts", [{ target: "/srv" }], "source"],
    ["mounts", [{ source: "/srv", writable: 1 }], "1"],
    ["mounts", [{ source: "/", target: "/host" }], '"/"'],
    ["mounts", [{ source: "/usr", target: "/proc/x" }], "/proc/x"],
    ["mounts", [{ source: "/usr", target: "/" }], '"/"'],
    ["mounts", [{ source: "/usr", target: "/glovebox" }], "/glovebox"],
    ["mounts", [{ source: "/usr", target: "/a/../b" }], "/a/../b"],
    ["mounts", [{ source: "/usr", target: "/usr/nothing/there" }], "/usr/nothing/there"],
    ["signal", "stop", "string"],
    ["onEvent", "log", "log"],
    ["githubToken", "a b", "githubToken"],
  ])("%s: %j", async (option, value, shown) => {
    await expectRefused(open({ [option]: value }), "invalid_argument", option, shown);
  });

  test.each<[string, string]>([
    ["repo", ""],
    ["repo", "a\0b"],
    ["repo", LONG],
    ["baseDir", ""],
    ["baseDir", "/tmp/a\0b"],
    ["baseDir", `/${LONG}`],
  ])("a path that cannot be one: %s", async (option, value) => {
    const shown = value.includes("\0") ? "NUL" : value === "" ? "empty" : "xxxxx";
    await expectRefused(open({ [option]: value }), "invalid_path", option, shown);
  });

  const BRANCHES = [
    "--upload-pack=x",
    "-b",
    "a..b",
    "x.lock",
    "a/x.lock/b",
    "",
    "HEAD",
    "a b",
    "a~1",
    "a^",
    "a:b",
    "a\\b",
  ];
  test.each([
    ...BRANCHES,
    "a\0b",
    "a\nb",
    "/a",
    "a/",
    "a//b",
    ".a",
    "a.",
    "@{-1}",
    "a?",
    "a*",
    "[a",
    "refs/../x",
    LONG,
  ])("branch %j", async (branch) => {
    await expectRefused(
      open({ repo, branch }),
      "invalid_argument",
      "branch",
      branch.replace(/[\0\n\\].*/, "").slice(0, 100),
    );
  });

  test("a name that is nearly an option's", async () => {
    await expectRefused(open({ brnach: "x" }), "invalid_argument", "brnach");
    await expect(open({ brnach: "x" })).rejects.toMatchObject({ hint: 'did you mean "branch"?' });
    await expect(open({ bakend: "local" })).rejects.toMatchObject({ hint: 'did you mean "backend"?' });
    await expectRefused(open({ __proto__x: 1 }), "invalid_argument", "__proto__x");
  });

  test("a repository that is not there, or none", async () => {
    const at = (path: string): string => join(scratch.path, path);
    await expectRefused(open({ repo: at("nowhere") }), "not_found", "repo", at("nowhere"));
    await expectRefused(open({ repo: at("plain") }), "invalid_argument", "repo", at("plain"));
    await expectRefused(open({ repo: at("file") }), "invalid_argument", "repo", at("file"));
    await expectRefused(open({ repo: join(repo, "sub") }), "invalid_argument", "repo", join(repo, "sub"));
    git(at("plain"), "init", "--quiet");
    await expectRefused(open({ repo: at("plain") }), "invalid_argument", "repo", at("plain"));
    await expectRefused(open({ repo: at("plain"), branch: "x" }), "invalid_argument", "repo", at("plain"));
  });

  test("a branch that is checked out, or that another one is in the way of", async () => {
    await expectRefused(open({ repo, branch: "main" }), "conflict", "main", repo);
    await expectRefused(open({ repo, branch: "other/below" }), "conflict", "other/below");
  });

  test("a mount that hides another one, or has no place in it", async () => {
    const usr = { source: "/usr", target: "/a" };
    for (const [first, target, shown] of [
      [usr, "/a", "hide the mount at /a"],
      [{ ...usr, target: "/a/b" }, "/a", "hide the mount at /a/b"],
      [usr, "/a/nothing", "does not exist in the mount at /a"],
    ] as const) {
      const mounts = [first, { source: "/srv", target }];
      await expectRefused(open({ mounts }), "invalid_argument", "mounts[1].target", shown);
    }
  });

  test("a directory that holds more than the sandbox may reach", async () => {
    const link = join(scratch.path, "link-to-home");
    mkdirSync(scratch.home, { recursive: true });
    for (const baseDir of [homedir(), link, "/", "/etc", "/usr/lib", "/proc", "/dev/shm", scratch.home, scratch.path]) {
      await expectRefused(open({ baseDir }), "invalid_argument", "baseDir", `"${baseDir}"`);
    }
    await expectRefused(open({ baseDir: join(scratch.path, "nowhere") }), "not_found", "baseDir", "nowhere");
    await expectRefused(open({ baseDir: join(scratch.path, "file") }), "invalid_argument", "baseDir", "file");
    const source = join(scratch.path, "nowhere");
    await expectRefused(open({ mounts: [{ source }] }), "not_found", "mounts[0].source", source);
  });

  test("options that exclude or need each other", async () => {
    const baseDir = join(scratch.path, "plain");
    await expectRefused(open({ repo, baseDir }), "invalid_argument", "baseDir", baseDir, "repo");
    await expectRefused(open({ branch: "x" }), "invalid_argument", "branch", "x", "repo");
    await expectRefused(open({ id: "abcdef0123456789", repo }), "invalid_argument", "repo", "id");
    await expectRefused(open({ id: "abcdef0123456789" }), "not_found", "abcdef0123456789");
  });

  test("what this backend can't enforce", async () => {
    await expectRefused(
      open({ isolation: "none", network: { allow: ["example.com"] } }),
      "unsupported",
      "network",
      "allow",
    );
    await expectRefused(open({ repo, workspace: "worktree", limits: { disk: 1 << 30 } }), "unsupported", "disk");
    await expectRefused(open({ image: "debian" }), "unsupported", "image", "debian");
    await expectRefused(open({ repo, workspace: "overlay", isolation: "none" }), "unsupported", "overlay");
    await expectRefused(open({ isolation: "none", network: "none" }), "unsupported", "network", "none");
    await expectRefused(open({ isolation: "none", mounts: [{ source: "/srv" }] }), "unsupported", "mount");
  });
});

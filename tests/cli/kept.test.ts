import { mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Sandbox, SandboxOptions } from "../../src/sandbox/types.js";
import { listSandboxes, openSandbox, removeSandbox } from "../../src/sandbox.js";
import { type Bench, createBench, type Ended } from "../support/cli.js";
import { END, member, pax } from "../support/git/hostile-tar.js";
import { createRepository, createScratch, git, type Scratch } from "../support/scratch.js";

let scratch: Scratch;
let bench: Bench;
let repo: string;
beforeAll(() => {
  scratch = createScratch();
  bench = createBench(scratch);
  repo = createRepository(join(bench.path, "repo"));
});
afterAll(() => scratch.remove());

// What is needed before and after the verbs is done by the library: a start of the program each time would be most of it.

/** A kept sandbox in which a script has run; its id. */
async function keep(script: string, opts: SandboxOptions = {}): Promise<string> {
  return await work({ repo, keep: true, ...opts }, async (sandbox) => {
    expect(await sandbox.shell(script)).toMatchObject({ exitCode: 0, stderr: "" });
    return sandbox.id;
  });
}

async function inside(id: string, script: string): Promise<string> {
  return await work({ id }, async (sandbox) => (await sandbox.shell(script)).stdout);
}

async function work<T>(opts: SandboxOptions, use: (sandbox: Sandbox) => Promise<T>): Promise<T> {
  await using sandbox = await openSandbox({ backend: "local", ...opts });
  return await use(sandbox);
}

async function remove(...all: string[]): Promise<void> {
  for (const id of all) await removeSandbox(id);
}

async function json<T>(...args: string[]): Promise<T> {
  return JSON.parse((await bench.run([...args, "--json"])).stdout) as T;
}

async function ids(): Promise<string[]> {
  return (await listSandboxes()).map(({ id }) => id).sort();
}

function refused(code: number, message: string, hint: string): Partial<Ended> {
  return { code, stdout: "", stderr: `glovebox: ${message}\nhint: ${hint}\n` };
}

describe("the verbs of kept sandboxes", () => {
  it("save, list, restore and delete", async () => {
    const id = await keep("printf 1 > a.txt; mkdir ignored; printf i > ignored/i");
    expect((await bench.run(["snapshots"])).stderr).toBe("glovebox: there are no snapshots\n");
    const { stdout, code } = await bench.run(["snapshot", id]);
    const snapshot = stdout.trim();
    expect({ code, isId: snapshot.startsWith(`${id}-`) }).toEqual({ code: 0, isId: true });
    expect((await bench.run(["snapshots"])).stdout).toMatch(
      new RegExp(`^ID +NAME +SANDBOX +CREATED +REPOSITORY\\n${snapshot} +${id} +\\d{4}-\\S+Z +${repo}\\n$`),
    );
    expect(await json("snapshots")).toMatchObject([{ id: snapshot, sandboxId: id, repo }]);
    await inside(id, "printf 2 > a.txt; rm -r ignored; printf new > new");

    const wrong = `${snapshot.slice(0, -1)}x`;
    expect(await bench.run(["restore", id, wrong])).toMatchObject(
      refused(1, `No snapshot with the id "${wrong}"`, `did you mean ${snapshot}?`),
    );
    expect(await inside(id, "cat a.txt new")).toBe("2new");
    expect(await bench.run(["restore", id, snapshot])).toMatchObject({ code: 0, stdout: `${id}\n` });
    expect(await inside(id, "cat a.txt ignored/i; ls new 2>&1 | tail -c 10")).toContain("1i");
    expect(await inside(id, "test -e new || printf gone")).toBe("gone");

    expect(await bench.run(["snapshots", "--delete", "none-such"])).toMatchObject(
      refused(1, 'No snapshot with the id or name "none-such"', "glovebox snapshots lists the ids and names"),
    );
    expect(await json("snapshots", "--delete", snapshot)).toEqual({ deleted: [snapshot] });
    expect((await bench.run(["snapshots", "-q"])).stdout).toBe("");
    await remove(id);
    expect(git(repo, "for-each-ref", "refs/glovebox")).toBe("");
  });

  it("take the name of a snapshot wherever they take its id", async () => {
    const id = await keep("printf 1 > a.txt");
    const named = await json<{ snapshot: string; name: string }>("snapshot", id, "--name", "before");
    expect(named).toEqual({ snapshot: expect.stringContaining(`${id}-`) as string, name: "before", sandbox: id });
    expect(await bench.run(["snapshot", id, "--name", "before"])).toMatchObject(
      refused(
        1,
        `The name "before" is in use by snapshot ${named.snapshot}`,
        "choose another name, or delete that snapshot (glovebox snapshots --delete before)",
      ),
    );
    expect(await bench.run(["snapshot", id, "--name", "Not this"])).toMatchObject({ code: 2 });
    expect((await bench.run(["snapshots", "-q"])).stdout).toBe("before\n");
    expect((await bench.run(["snapshots"])).stdout).toContain(`${named.snapshot}  before `);
    await inside(id, "printf 2 > a.txt");
    expect(await bench.run(["restore", id, "befor"])).toMatchObject(
      refused(1, 'No snapshot with the id "befor"', "did you mean before?"),
    );
    expect(await bench.run(["restore", id, "before"])).toMatchObject({ code: 0, stdout: `${id}\n` });
    expect(await inside(id, "cat a.txt")).toBe("1");
    expect(await bench.run(["exec", "--snapshot", "before", "--", "cat", "a.txt"])).toMatchObject({
      code: 0,
      stdout: "1",
    });
    expect(await bench.run(["exec", "--snapshot", "befor", "--", "true"])).toMatchObject(
      refused(1, 'No snapshot with the id or name "befor"', "did you mean before?"),
    );
    expect(await json("snapshots", "--delete", "before")).toEqual({ deleted: ["before"] });
    expect((await bench.run(["snapshots", "-q"])).stdout).toBe("");
    await remove(id);
  });

  it("show when a sandbox expires, and end one at that time", async () => {
    const { stdout } = await bench.run(["exec", "--keep", "--ttl", "1h", "--idle", "10m", "--json", "--", "true"]);
    const { sandbox } = JSON.parse(stdout) as { sandbox: { id: string } };
    expect((await bench.run(["ls"])).stdout).toMatch(
      new RegExp(`EXPIRES +DIRECTORY\\n${sandbox.id} +kept +local +\\S+Z +\\S+Z +/`),
    );
    await remove(sandbox.id);
    const ended = await bench.run(["exec", "--ttl", "1500ms", "--", "sleep", "60"]);
    expect(ended).toMatchObject({ code: 1, stderr: expect.stringContaining("when its ttl ended") as string });
    expect(await bench.run(["exec", "--ttl", "31d", "--", "true"])).toMatchObject({ code: 2 });
    expect(await ids()).toEqual([]);
  });

  it("fork, and the forks are kept, with the files as they are", async () => {
    const id = await keep("printf x > new", { branch: "forked", workspace: "overlay" });
    const { code, stdout } = await bench.run(["fork", id, "--count", "2"]);
    const forks = stdout.split("\n").filter(Boolean);
    expect({ code, count: forks.length }).toEqual({ code: 0, count: 2 });
    expect(await ids()).toEqual([id, ...forks].sort());
    expect(await inside(forks[1] ?? "", "cat new; git symbolic-ref --short HEAD")).toBe("xforked-fork-2\n");
    const { forks: more } = await json<{ forks: { id: string; workDir: string }[] }>("fork", id);
    expect(more).toHaveLength(1);
    expect((await bench.run(["fork", id, "--count", "65"])).code).toBe(2);
    expect((await bench.run(["fork", id, "--count", "0"])).code).toBe(2);
    await remove(id, ...forks, more[0]?.id ?? "");
    expect(await ids()).toEqual([]);
    const { code: reaped, stdout: report } = await bench.run(["reap", "--cache"]);
    expect({ reaped, report }).toMatchObject({
      reaped: 0,
      report: expect.stringMatching(/\n1 removed from the cache\n$/),
    });
    expect((await bench.run(["reap", "--cache", "1g", "--json"])).stdout).toContain('"cache":[]');
    expect(await bench.run(["reap", "-n", "--cache"])).toMatchObject(
      refused(2, "--dry-run does not work with --cache", "remove --cache"),
    );
  });

  it("show what was changed: a patch that git takes, counts, names", async () => {
    const id = await keep(
      "printf 'one\\n-- two\\n' > a.txt; mv sub/b.txt sub/c.txt; printf 'n\\n' > \"$(printf 'new\\nline')\"; printf '\\0' > bin",
    );
    const { stdout: patch, code } = await bench.run(["diff", id]);
    expect(code).toBe(0);
    const copy = join(bench.path, "copy");
    git(bench.path, "clone", "--quiet", repo, copy);
    writeFileSync(join(bench.path, "patch"), patch.replace(/diff --git a\/bin [\s\S]*?differ\n/, ""));
    git(copy, "apply", join(bench.path, "patch"));
    expect(readFileSync(join(copy, "a.txt"), "utf8")).toBe("one\n-- two\n");
    expect((await bench.run(["diff", id, "--name-status"])).stdout.split("\n").sort()).toEqual(
      ["", "A\tbin", 'A\t"new\\nline"', "M\ta.txt", "R\tsub/c.txt"].sort(),
    );
    const stat = (await bench.run(["diff", id, "--stat"])).stdout;
    expect(stat).toMatch(/^ a\.txt +\+2 -1$/m);
    expect(stat).toMatch(/^ bin +binary$/m);
    expect(stat).toMatch(/^4 files changed, 3 lines added, 1 removed$/m);
    expect(await json("diff", id)).toMatchObject({
      patch,
      files: expect.arrayContaining([{ path: "bin", status: "added" }]),
    });
    expect(await bench.run(["diff", id, "--stat", "--name-status"])).toMatchObject({ code: 2 });
    await remove(id);
  });

  it("never lose a nested repository silently: it is named by each, or comes along", async () => {
    const id = await keep("git init -q nested; printf in > nested/file; printf w > work");
    const told = (fate: string): string => `glovebox: warning: "nested" is a repository of its own and is ${fate}\n`;
    for (const flag of ["--json", "--stat", "--name-status"]) {
      expect((await bench.run(["diff", id, flag])).stderr).toBe(told("not in the changes; a snapshot saves it"));
    }
    expect((await bench.run(["diff", id, "--stat"])).stdout).toMatch(/^1 file changed, 1 line added, 0 removed$/m);
    const { stdout, stderr } = await bench.run(["snapshot", id]);
    expect(stderr).toBe(told("saved beside the commit, with the ignored files"));
    await inside(id, "rm -rf nested");
    await bench.run(["restore", id, stdout.trim()]);
    expect(await inside(id, "cat nested/file; git -C nested status -s")).toBe("in?? file\n");
    const fork = (await bench.run(["fork", id])).stdout.trim();
    expect(await inside(fork, "cat nested/file; git -C nested status -s")).toBe("in?? file\n");
    await bench.run(["export", id, ".", "whole"]);
    expect(readFileSync(join(bench.path, "whole", "nested", "file"), "utf8")).toBe("in");
    // Where git is inside means nothing here.
    expect(readdirSync(join(bench.path, "whole")).sort()).toEqual([".gitignore", "a.txt", "nested", "sub", "work"]);
    await bench.run(["snapshots", "--delete", stdout.trim()]);
    await remove(id, fork);
  });

  it("copy out and in", async () => {
    const id = await keep("mkdir -p out/deep; printf x > out/deep/x; ln -s /etc/passwd out/bad");
    const host = join(bench.path, "taken");
    const { code, stdout, stderr } = await bench.run(["export", id, "out", "taken"]);
    expect({ code, stdout }).toEqual({ code: 0, stdout: `${host}\n` });
    expect(stderr).toMatch(/^glovebox: warning: Skipped links that lead out of \S+\/out: "bad"$/m);
    expect(readdirSync(host)).toEqual(["deep"]);
    expect(readFileSync(join(host, "deep", "x"), "utf8")).toBe("x");
    expect(await bench.run(["export", id, "out", host])).toMatchObject(
      refused(1, `The host directory ${host} is not empty`, "choose a new directory"),
    );
    mkdirSync(join(bench.path, "empty"));
    symlinkSync(join(bench.path, "empty"), join(bench.path, "link"));
    expect(await bench.run(["export", id, "out", "link"])).toMatchObject(
      refused(1, `The host path ${join(bench.path, "link")} is a symbolic link`, "choose a new directory"),
    );
    expect(readdirSync(join(bench.path, "empty"))).toEqual([]);
    expect((await bench.run(["export", id, "nowhere", "elsewhere"])).code).toBe(1);
    expect(await json("import", id, "taken", "again")).toEqual({ sandbox: id, path: "again" });
    expect(await inside(id, "cat again/deep/x")).toBe("x");
    expect((await bench.run(["import", id, "nowhere", "again"])).code).toBe(1);
    expect(await bench.run(["import", id, "taken", "../out"])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("path confinement violation: ../out is outside base directory") as string,
    });
    await remove(id);
  });

  it("unpack an archive, or refuse it as a whole when something in it leads out or is no file", async () => {
    const id = await keep("mkdir d; printf old > d/x");
    const write = (name: string, ...parts: Buffer[]): void =>
      writeFileSync(join(bench.path, name), Buffer.concat([...parts, END]));
    write("good.tar", member("deep/x", { data: "new" }), member("l", { type: "2", link: "deep/x" }));
    writeFileSync(join(bench.path, "good.tgz"), gzipSync(readFileSync(join(bench.path, "good.tar"))));
    for (const name of ["good.tar", "good.tgz"]) {
      expect(await json("import", id, name, name, "--archive")).toEqual({ sandbox: id, path: name });
      expect(await inside(id, `cat ${name}/l`)).toBe("new");
    }
    const first = member("x", { data: "new" });
    write("climbs.tar", first, member("../x", { data: "x" }));
    write("link.tar", first, member("l", { type: "2", link: "/etc" }), member("l/x", { data: "x" }));
    write("device.tar", first, member("null", { type: "3" }));
    write("zeros.tar", first, pax({ size: String(10 * 1024 ** 3) }), member("zeros", { data: "x" }));
    truncateSync(join(bench.path, "zeros.tar"), 10 * 1024 ** 3 + 4096);
    const said: [string, string][] = [
      ["climbs.tar", "../x is outside"],
      ["link.tar", "l/x is outside"],
      ["device.tar", 'more than files, directories and links: "null"'],
      ["zeros.tar", "more than 8589934592 bytes"],
      ["none.tar", "no such file"],
    ];
    for (const [name, text] of said) {
      const { code, stderr } = await bench.run(["import", id, name, "d", "--archive"]);
      expect({ name, code, stderr }).toEqual({ name, code: 1, stderr: expect.stringContaining(text) });
    }
    expect(await inside(id, "ls d; cat d/x")).toBe("x\nold");
    expect(readdirSync(join(scratch.home, "sandboxes", id)).filter((name) => name.startsWith("import"))).toEqual([]);
    await remove(id);
  });

  it("copy single files out and in, by way of a link too, and never over a file of the user's", async () => {
    const id = await keep("printf x > tool; chmod 755 tool; mkdir d; ln -s ../tool d/link; ln -s d to-d");
    const host = join(bench.path, "tool");
    expect(await bench.run(["export", id, "tool", "tool"])).toMatchObject({ code: 0, stdout: `${host}\n` });
    expect([readFileSync(host, "utf8"), statSync(host).mode & 0o777]).toEqual(["x", 0o755]);
    expect(await json("export", id, "d/link", "linked")).toEqual({ sandbox: id, path: join(bench.path, "linked") });
    expect((await bench.run(["export", id, "to-d", "d"])).code).toBe(0);
    writeFileSync(host, "mine");
    expect(await bench.run(["export", id, "tool", "tool"])).toMatchObject(
      refused(1, `The host path ${host} exists already`, "choose a new name"),
    );
    expect(await bench.run(["export", id, "tool", "no/tool"])).toMatchObject({ code: 1 });
    expect(await json("import", id, "tool", "deep/er/tool")).toEqual({ sandbox: id, path: "deep/er/tool" });
    expect(await inside(id, "cat deep/er/tool; stat -c %a deep/er/tool")).toBe("mine755\n");
    expect(await bench.run(["import", id, "tool", "d"])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(
        /\/d is not a regular file\nhint: name a regular file, or one that does not exist yet\n$/,
      ) as string,
    });
    await remove(id);
  });

  it("say which sandbox may have been meant, and that one is in use", async () => {
    const id = await keep("true");
    const wrong = `${id.slice(0, -1)}x`;
    for (const line of [
      ["snapshot", wrong],
      ["restore", wrong, "s"],
      ["fork", wrong],
      ["diff", wrong],
    ]) {
      const { code, stderr } = await bench.run(line);
      expect([line[0], code, stderr]).toEqual([line[0], 1, expect.stringContaining(`\nhint: did you mean ${id}?\n`)]);
    }
    const run = bench.start(["exec", "--id", id, "--", "sh", "-c", "echo ready; read line"]);
    await run.printed("ready\n");
    expect(await bench.run(["snapshot", id])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("is open in process") as string,
    });
    run.child.stdin?.end("\n");
    await run.ended;
    await remove(id);
  });
});

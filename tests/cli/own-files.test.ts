import { execFile } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Bench, createBench, type Ended, program } from "../support/cli.js";
import { createRepository, git } from "../support/scratch.js";
import { treeDigest } from "../support/tree-digest.js";

let bench: Bench;
beforeEach(() => {
  bench = createBench();
});
afterEach(() => bench.remove());

/** Runs the command line in another directory of the bench. */
async function runIn(directory: string, args: readonly string[], env: Record<string, string> = {}): Promise<Ended> {
  const script = 'cd -- "$0" && exec "$@"';
  return await new Promise((resolve) => {
    const all = { ...bench.env, ...env };
    const child = execFile(
      "sh",
      ["-c", script, directory, process.execPath, program, ...args],
      { env: all },
      (error, stdout, stderr) => {
        const code = error === null ? 0 : Number(error.code);
        resolve({ code, signal: null, stdout, stderr, bytes: Buffer.from(stdout) });
      },
    );
    child.stdin?.end();
  });
}

describe("exec --repo", () => {
  function makeDirty(): string {
    const repo = createRepository(join(bench.path, "repo"));
    mkdirSync(join(repo, "was-dir"));
    writeFileSync(join(repo, "was-dir", "x"), "x\n");
    for (const name of ["was-file", "gone", "tool", ".env.example"]) writeFileSync(join(repo, name), `${name}\n`);
    writeFileSync(join(repo, ".gitignore"), "ignored\n");
    git(repo, "add", "-A");
    git(repo, "commit", "--quiet", "-m", "start");
    writeFileSync(join(repo, "a.txt"), "edited\n");
    writeFileSync(join(repo, "staged"), "staged\n");
    git(repo, "add", "staged");
    chmodSync(join(repo, "tool"), 0o755);
    rmSync(join(repo, "gone"));
    rmSync(join(repo, "was-dir"), { recursive: true });
    writeFileSync(join(repo, "was-dir"), "now a file\n");
    rmSync(join(repo, "was-file"));
    mkdirSync(join(repo, "was-file", "deep"), { recursive: true });
    writeFileSync(join(repo, "was-file", "deep", "new"), "deep\n");
    writeFileSync(join(bench.path, "secret"), "host secret\n");
    symlinkSync(join(bench.path, "secret"), join(repo, "link"));
    writeFileSync(join(repo, "ignored"), "ignored\n");
    writeFileSync(join(repo, ".env.local"), "PASSWORD=1\n");
    writeFileSync(join(repo, ".env.example"), "PASSWORD=2\n");
    return repo;
  }

  test("says which uncommitted edits are left out", async () => {
    const repo = createRepository(join(bench.path, "repo"));
    const clean = await bench.run(["exec", "--repo", "repo", "--", "cat", "a.txt"]);
    expect(clean).toMatchObject({ code: 0, stderr: "" });
    writeFileSync(join(repo, "a.txt"), "edited\n");
    writeFileSync(join(repo, "new"), "");
    const { code, stdout, stderr } = await bench.run(["exec", "--repo", "repo", "--", "cat", "a.txt"]);
    expect({ code, stdout }).toEqual({ code: 0, stdout: clean.stdout });
    expect(stderr).toBe("glovebox: uncommitted edits are left out: a.txt, new; --include-dirty copies them in\n");
  });

  test("--include-dirty copies them in, without following a link, and leaves the repository as it was", async () => {
    const repo = makeDirty();
    const before = treeDigest(repo);
    const script = `cat a.txt staged was-dir was-file/deep/new; test -x tool && echo runs; ls -A; readlink link; git status --short`;
    const { code, stdout, stderr } = await bench.run([
      "exec",
      "--repo",
      "repo",
      "--include-dirty",
      "--",
      "sh",
      "-c",
      script,
    ]);
    expect(code).toBe(0);
    const lines = stdout.trimEnd().split("\n");
    expect(lines.slice(0, 5)).toEqual(["edited", "staged", "now a file", "deep", "runs"]);
    const names = [
      ".env.example",
      ".git",
      ".gitignore",
      "a.txt",
      "link",
      "staged",
      "sub",
      "tool",
      "was-dir",
      "was-file",
    ];
    expect(lines.slice(5, 15)).toEqual(names);
    expect(lines[15]).toBe(join(bench.path, "secret"));
    expect(lines.slice(16).sort()).toEqual(
      [" D gone", " D was-dir/x", " D was-file", " M a.txt", " M tool", "?? link", "?? staged", "?? was-dir"].sort(),
    );
    expect(stdout).not.toMatch(/host secret|PASSWORD/);
    expect(stderr).toMatch(/^glovebox: left out: \.env\.example, \.env\.local; \.env files .* never copied in\n$/);
    expect(treeDigest(repo)).toEqual(before);
    expect(await bench.settled()).toEqual([]);
  });

  test("--include-dirty copies nothing that a link in the place of a directory leads to", async () => {
    const repo = createRepository(join(bench.path, "repo"));
    mkdirSync(join(bench.path, "outside"));
    writeFileSync(join(bench.path, "outside", "b.txt"), "outside\n");
    renameSync(join(repo, "sub"), join(repo, "moved"));
    symlinkSync(join(bench.path, "outside"), join(repo, "sub"));
    const { code, stdout } = await bench.run([
      ...["exec", "--repo", "repo", "--include-dirty", "--", "sh", "-c"],
      "readlink sub; ls moved; cat sub/b.txt 2>/dev/null; true",
    ]);
    expect({ code, stdout }).toEqual({ code: 0, stdout: `${join(bench.path, "outside")}\nb.txt\n` });
  });

  test.each([
    [["--include-dirty"], /--include-dirty needs --repo/],
    [["--repo", "repo", "--include-dirty", "--name", "x", "--reopen"], /does not go together with --reopen/],
    [["--repo", "repo", "--include-dirty", "--branch", "earlier"], /Branch "earlier" is at another commit/],
    [["--repo", "bare", "--include-dirty"], /has no working tree/],
  ])("%j is refused", async (flags, message) => {
    const repo = createRepository(join(bench.path, "repo"));
    git(repo, "branch", "earlier");
    writeFileSync(join(repo, "a.txt"), "more\n");
    git(repo, "commit", "--quiet", "-am", "more");
    git(repo, "clone", "--quiet", "--bare", repo, join(bench.path, "bare"));
    const { code, stdout, stderr } = await bench.run(["exec", ...flags, "--", "true"]);
    expect(code).not.toBe(0);
    expect(stdout).toBe("");
    expect(stderr).toMatch(message);
    expect(await bench.settled()).toEqual([]);
  });
});

describe("exec --here", () => {
  test("shows the current directory at its own path, read-only, and starts there", async () => {
    const place = join(bench.path, "project");
    mkdirSync(join(place, "sub"), { recursive: true });
    writeFileSync(join(place, "file"), "mine\n");
    const seen = await runIn(place, ["exec", "--here", "--", "sh", "-c", "pwd; cat file; touch new"]);
    expect(seen).toMatchObject({ code: 1, stdout: `${place}\nmine\n` });
    expect(seen.stderr).toMatch(/Read-only file system/);
    expect(existsSync(join(place, "new"))).toBe(false);
    expect((await runIn(place, ["exec", "--here", "--cwd", "sub", "--", "pwd"])).stdout).toBe(`${place}/sub\n`);
    expect((await runIn(place, ["exec", "--here", "--", "no-such-program"])).code).toBe(127);
    const missing = await runIn(place, ["exec", "--here", "--cwd", "nowhere", "--", "pwd"]);
    expect(missing).toMatchObject({ code: 1, stdout: "" });
    expect(missing.stderr).toMatch(/^glovebox: .*project\/nowhere/);
    expect((await runIn(place, ["exec", "--", "cat", join(place, "file")])).code).toBe(1);
  });

  test("=copy gives a copy to write to, links as links", async () => {
    const place = join(bench.path, "project");
    mkdirSync(place);
    writeFileSync(join(bench.path, "secret"), "host secret\n");
    writeFileSync(join(place, "file"), "mine\n");
    symlinkSync(join(bench.path, "secret"), join(place, "link"));
    const script = "pwd; echo changed >> file; cat file; cat link";
    const copied = await runIn(place, ["exec", "--here=copy", "--", "sh", "-c", script]);
    expect(copied).toMatchObject({ code: 1, stdout: "/workspace\nmine\nchanged\n" });
    expect(readFileSync(join(place, "file"), "utf8")).toBe("mine\n");
    expect(await bench.settled()).toEqual([]);
  });

  test("is refused in the home directory, in Glovebox's own, in what contains them, and in the system", async () => {
    const home = join(bench.path, "a", "home");
    const state = join(bench.path, "b", "state");
    for (const path of [home, join(state, "deep"), join(bench.path, "linked")])
      mkdirSync(path, { recursive: true, mode: 0o700 });
    const env = { HOME: home, GLOVEBOX_HOME: state };
    for (const place of [
      "/",
      "/etc",
      bench.path,
      join(home, ".."),
      home,
      join(state, ".."),
      state,
      join(state, "deep"),
    ]) {
      for (const flag of ["--here", "--here=copy"]) {
        const { code, stdout, stderr } = await runIn(place, ["exec", flag, "--", "ls"], env);
        expect({ place, code, stdout }).toEqual({ place, code: 2, stdout: "" });
        expect(stderr).toMatch(/^glovebox: --here refuses \/.*\nhint: change to the directory of a project first\n$/);
      }
    }
    symlinkSync(home, join(bench.path, "linked", "home"));
    const linked = { HOME: join(bench.path, "linked", "home"), GLOVEBOX_HOME: state };
    expect((await runIn(home, ["exec", "--here", "--", "ls"], linked)).code).toBe(2);
    mkdirSync(join(home, "project"));
    expect((await runIn(join(home, "project"), ["exec", "--here", "--", "true"], env)).code).toBe(0);
  });

  test.each([
    [["--here", "--repo", "."], /--here does not go together with --repo/],
    [["--here=rw"], /--here takes copy, not "rw"/],
    [["--here", "--paths", "workdir"], /--here starts the command outside the work directory\nhint: leave --paths/],
  ])("%j is refused", async (flags, message) => {
    const place = join(bench.path, "project");
    mkdirSync(place);
    const { code, stderr } = await runIn(place, ["exec", ...flags, "--", "true"]);
    expect(code).toBe(2);
    expect(stderr).toMatch(message);
  });
});

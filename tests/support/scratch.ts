import { execFileSync } from "node:child_process";
import { appendFileSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { shellQuote } from "../../src/util/shell.js";
import { madeOnce } from "./run/made-once.js";

/** A directory for one test, with an own Glovebox home; both are gone after `remove`. */
export interface Scratch {
  readonly path: string;
  readonly home: string;
  remove(): void;
}

/** Makes a scratch directory and points `GLOVEBOX_HOME` into it. With `ownEtc` the home is not there yet, and has nothing of another's. */
export function createScratch({ ownEtc = false }: { ownEtc?: boolean } = {}): Scratch {
  const path = realpathSync(mkdtempSync(join(tmpdir(), "glovebox-test-")));
  const before = process.env["GLOVEBOX_HOME"];
  const home = join(path, "home");
  if (!ownEtc) shareEtc(home);
  process.env["GLOVEBOX_HOME"] = home;
  return {
    path,
    home,
    remove() {
      if (before === undefined) delete process.env["GLOVEBOX_HOME"];
      else process.env["GLOVEBOX_HOME"] = before;
      rmSync(path, { recursive: true, force: true });
    },
  };
}

/** Lets the homes of this process share what `/etc` is prepared for their sandboxes: hundreds of files, the same for all. */
function shareEtc(home: string): void {
  const shared = join(process.env["GLOVEBOX_TEST_PLACE"] ?? dirname(dirname(home)), `etc-${process.pid}`);
  for (const path of [home, shared]) mkdirSync(path, { recursive: true, mode: 0o700 });
  symlinkSync(shared, join(home, "etc"));
}

const AUTHOR = ["-c", "user.name=Somebody", "-c", "user.email=somebody@example.invalid"];

/** Runs git as a user would and gives its output without the last line end. */
export function git(cwd: string, ...args: string[]): string {
  return runAsUser(cwd, "git", [...AUTHOR, ...args]).trimEnd();
}

/** What several gits say, one after the other, none of it with a zero byte: to start one takes longer from here than from a shell. */
export function gitEach(cwd: string, ...commands: readonly (readonly string[])[]): string[] {
  const script = commands.map((args) => shellQuote(["git", ...AUTHOR, ...args])).join(" && printf '\\0' && ");
  return runAsUser(cwd, "/bin/sh", ["-c", script])
    .split("\0")
    .map((text) => text.trimEnd());
}

function runAsUser(cwd: string, program: string, args: string[]): string {
  const env = { PATH: process.env["PATH"] ?? "", HOME: "/nonexistent", LC_ALL: "C", GIT_CONFIG_NOSYSTEM: "1" };
  return execFileSync(program, args, { cwd, env, stdio: ["ignore", "pipe", "pipe"] }).toString();
}

/** A repository with two commits on `main`, a branch and a tag. */
export function createRepository(path: string, ...initOptions: string[]): string {
  madeOnce(`repository ${initOptions.join(" ")}`, path, () => makeRepository(path, initOptions));
  // The index knows files by their inodes; some commands take none for unchanged that it does not know.
  git(path, "update-index", "-q", "--refresh");
  return path;
}

function makeRepository(path: string, initOptions: readonly string[]): void {
  mkdirSync(path, { recursive: true });
  git(path, "init", "--quiet", "--initial-branch=main", ...initOptions);
  writeFileSync(join(path, "a.txt"), "one\n");
  mkdirSync(join(path, "sub"));
  writeFileSync(join(path, "sub", "b.txt"), "two\n");
  writeFileSync(join(path, ".gitignore"), "ignored/\n");
  git(path, "add", "-A");
  git(path, "commit", "--quiet", "-m", "first");
  git(path, "branch", "other");
  git(path, "tag", "-a", "v1", "-m", "version 1");
  writeFileSync(join(path, "a.txt"), "one more\n");
  git(path, "commit", "--quiet", "-am", "second");
}

/** A bare repository that takes pushes over HTTP and has the refs of one that is as it was created. */
export function createRemote(path: string, repo: string, ...refs: string[]): string {
  return madeOnce(`remote ${refs.join(" ")}`, path, () => {
    mkdirSync(path, { recursive: true });
    git(path, "init", "--quiet", "--bare", "--initial-branch=main");
    git(path, "config", "http.receivepack", "true");
    git(repo, "push", "--quiet", path, ...refs);
  });
}

/** Tells a repository of its remote, as `git remote add` does. */
export function addOrigin(repo: string, url: string): void {
  const lines = ['[remote "origin"]', `\turl = ${url}`, "\tfetch = +refs/heads/*:refs/remotes/origin/*"];
  appendFileSync(join(repo, ".git", "config"), `${lines.join("\n")}\n`);
}

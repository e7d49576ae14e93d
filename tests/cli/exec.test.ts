import { randomBytes } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Bench, createBench } from "../support/cli.js";
import { createRepository, git } from "../support/scratch.js";

let bench: Bench;
beforeAll(() => {
  bench = createBench();
});
afterAll(() => bench.remove());

describe("glovebox exec", () => {
  it("shows both streams and passes the exit code on, and leaves nothing", async () => {
    const { code, stdout, stderr } = await bench.run(["exec", "--", "sh", "-c", "echo out; echo err >&2; exit 7"]);
    expect({ code, stdout, stderr }).toEqual({ code: 7, stdout: "out\n", stderr: "err\n" });
    expect(await bench.settled()).toEqual([]);
  });

  it("shows both streams in their order on stdout with --combined", async () => {
    const text = "for i in 1 2 3 4 5; do echo out$i; echo err$i >&2; done";
    const { code, stdout, stderr } = await bench.run(["exec", "--combined", "--", "sh", "-c", text]);
    const lines = [1, 2, 3, 4, 5].map((i) => `out${i}\nerr${i}\n`).join("");
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: lines, stderr: "" });
  });

  it("runs the command in --cwd, and as --user only where the backend can", async () => {
    const kept = await bench.run(["exec", "--keep", "--json", "--", "mkdir", "-p", "a/b"]);
    const { id } = (JSON.parse(kept.stdout) as { sandbox: { id: string } }).sandbox;
    expect(await bench.run(["exec", "--id", id, "--cwd", "a/b", "--", "pwd"])).toMatchObject({
      code: 0,
      stdout: "/workspace/a/b\n",
    });
    const missing = await bench.run(["exec", "--id", id, "--cwd", "nowhere", "--", "pwd"]);
    expect(missing).toMatchObject({ code: 1, stdout: "" });
    expect(missing.stderr).toMatch(/nowhere/);
    const user = await bench.run(["exec", "--user", "nobody", "--", "id"]);
    expect(user).toMatchObject({ code: 1, stdout: "" });
    expect(user.stderr).toMatch(/^glovebox: .*user/);
    await bench.run(["rm", id]);
  });

  it("without a verb is a short help", async () => {
    const { code, stdout, stderr } = await bench.run([]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(/^ {2}exec {2,}run a command in a sandbox/m);
    expect(stdout).toContain("glovebox --help lists all verbs");
    expect(stdout.split("\n").length).toBeLessThan(16);
  });

  it("shows output while the command still runs", async () => {
    const run = bench.start(["exec", "--", "sh", "-c", "echo first; read line; echo got $line"]);
    await run.printed("first\n");
    run.child.stdin?.end("second\n");
    expect(await run.ended).toMatchObject({ code: 0, stdout: "first\ngot second\n" });
  });

  it("passes every byte of standard input and output where there is no terminal", async () => {
    const bytes = randomBytes(1_000_000);
    const echoed = await bench.run(["exec", "--", "cat"], { input: bytes });
    expect(echoed.code).toBe(0);
    expect(echoed.bytes.equals(bytes)).toBe(true);
    const { stdout } = await bench.run(["exec", "--", "printf", "\\033]0;title\\007\\r\\b"]);
    expect(stdout).toBe("\x1b]0;title\x07\r\b");
  });

  it("publishes ports, also of a sandbox that is opened again, and says where", async () => {
    const script =
      "perl -MIO::Socket -e '$s=IO::Socket::INET->new(Listen=>9,LocalAddr=>q(127.0.0.1:3000));print qq(up\\n);close STDOUT;$c=$s->accept;print $c q(hello)'";
    const ask = async (args: string[]): Promise<string> => {
      const run = bench.start(["exec", ...args, "--", "sh", "-c", script]);
      let said = "";
      run.child.stderr?.on("data", (chunk: Buffer) => {
        said += chunk.toString();
      });
      await run.printed("up\n");
      await expect.poll(() => said, { timeout: 30_000 }).toContain(" -> 3000\n");
      const [, port] = /^glovebox: http:\/\/127\.0\.0\.1:(\d+) -> 3000\n/.exec(said) ?? [];
      const answer = await text(connect(Number(port), "127.0.0.1"));
      expect((await run.ended).code).toBe(0);
      return answer;
    };
    expect(await ask(["--publish", "3000"])).toBe("hello");
    expect(await ask(["--keep", "--publish", "3000", "--publish", "3001"])).toBe("hello");
    const [kept] = JSON.parse((await bench.run(["ls", "--json"])).stdout) as { id: string }[];
    expect(await ask(["--id", kept?.id ?? ""])).toBe("hello");
    const json = JSON.parse((await bench.run(["exec", "--json", "--id", kept?.id ?? "", "--", "true"])).stdout);
    expect(json).toMatchObject({ published: [{ port: 3000, url: expect.stringMatching(/^http:/) }, { port: 3001 }] });
    await bench.run(["rm", kept?.id ?? ""]);
    expect(await bench.run(["exec", "--publish", "0", "--", "true"])).toMatchObject({ code: 2 });
  });

  it("works in /workspace, or where --work-dir says, unless something else must be there", async () => {
    const where = async (...args: string[]): Promise<string> => {
      const { code, stdout, stderr } = await bench.run(["exec", ...args, "--", "pwd", "-P"]);
      return code === 0 ? stdout.trim() : stderr;
    };
    const own = join(bench.path, "own");
    mkdirSync(own);
    expect(await where()).toBe("/workspace");
    expect(await where("--work-dir", "/srv/app/")).toBe("/srv/app");
    expect(await where("--work-dir", "app")).toContain('Invalid --work-dir "app"');
    expect(await where("--base-dir", own)).toBe(own);
    expect(await where("--base-dir", own, "--work-dir", "/srv/app")).toContain("--base-dir");
    for (const other of [
      ["--isolation", "none", "--network", "full"],
      ["--mount", `${own}:/workspace/data`],
    ]) {
      expect(await where(...other)).toMatch(/\/harness-[0-9a-f]+$/);
    }
  });

  it("keeps a sandbox whose files can be used wherever commands can, with --paths sandbox", async () => {
    const made = ["--keep=all", "--paths", "sandbox", "--name", "far"];
    expect(await bench.run(["exec", ...made, "--", "sh", "-c", "echo hi > /tmp/note"])).toMatchObject({ code: 0 });
    const target = join(bench.path, "note");
    expect(await bench.run(["export", "far", "/tmp/note", target])).toMatchObject({ code: 0 });
    expect(readFileSync(target, "utf8")).toBe("hi\n");
    const other = await bench.run(["exec", "--id", "far", "--paths", "workdir", "--", "true"]);
    expect(other).toMatchObject({ code: 2, stderr: expect.stringContaining("paths") });
    await bench.run(["rm", "far"]);
    expect(await bench.run(["exec", "--keep", "--name", "near", "--", "true"])).toMatchObject({ code: 0 });
    const outside = await bench.run(["export", "near", "/tmp/note", join(bench.path, "none")]);
    expect(outside).toMatchObject({ code: 1, stderr: expect.stringContaining("--paths sandbox") });
    await bench.run(["rm", "near"]);
    const bad = await bench.run(["exec", "--paths", "all", "--", "true"]);
    expect(bad).toMatchObject({ code: 2, stderr: expect.stringContaining("sandbox") });
    const unconfined = ["--isolation", "none", "--network", "full", "--paths", "sandbox"];
    const refused = await bench.run(["exec", ...unconfined, "--", "true"]);
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining("paths") });
  });

  it("ends although nobody closes its standard input", async () => {
    const run = bench.start(["exec", "--", "echo", "done"]);
    expect(await run.ended).toMatchObject({ code: 0, stdout: "done\n" });
  });

  it("gives 124 at the deadline, 127 and 126 for what cannot be run, 128+n for a signal", async () => {
    const late = await bench.run(["exec", "--timeout", "300ms", "--", "sh", "-c", "echo partial; sleep 60"]);
    expect(late).toMatchObject({ code: 124, stdout: "partial\n" });
    expect(late.stderr).toBe("glovebox: the command was killed at its timeout of 300ms\n");
    expect((await bench.run(["exec", "--", "no-such-program"])).code).toBe(127);
    expect((await bench.run(["exec", "--", "/etc/hostname"])).code).toBe(126);
    expect((await bench.run(["exec", "--", "sh", "-c", "kill -USR1 $$"])).code).toBe(138);
    expect((await bench.run(["exec", "--", "sh", "-c", "exit 125"])).code).toBe(125);
  });

  it("gives one JSON document with --json, the exit code still being the command's", async () => {
    const { code, stdout, stderr } = await bench.run([
      "exec",
      "--json",
      "--",
      "sh",
      "-c",
      "printf '\\033[1m\\302\\233é'; echo e >&2; exit 3",
    ]);
    expect({ code, stderr }).toEqual({ code: 3, stderr: "" });
    expect(stdout).not.toMatch(/[^\P{Cc}\n]/u);
    expect(JSON.parse(stdout)).toMatchObject({
      exitCode: 3,
      stdout: "\x1b[1m\u009bé",
      stderr: "e\n",
      timedOut: false,
      truncated: { stdout: false, stderr: false },
      bytes: { stdout: 8, stderr: 2 },
      sandbox: { backend: "local" },
    });
  });

  it("bounds what --json keeps, and says so", async () => {
    const { stdout } = await bench.run(["exec", "--json", "--", "sh", "-c", "yes | head -c 5000000"]);
    const result = JSON.parse(stdout) as { stdout: string; bytes: object; truncated: object };
    expect(result.stdout.length).toBeLessThan(1_100_000);
    expect(result).toMatchObject({ bytes: { stdout: 5_000_000 }, truncated: { stdout: true, stderr: false } });
  });

  it("hands variables, mounts and the network rule on", async () => {
    const file = join(bench.path, "shown.txt");
    writeFileSync(file, "from outside\n");
    const flags = ["--env", "A=1 2", "-e", "PASSED", "--mount", `${file}:/mnt/shown.txt`, "--network", "none"];
    const script = 'echo "$A $PASSED"; cat /mnt/shown.txt; echo x > /mnt/shown.txt; ls /sys/class/net /proc/net/route';
    const { stdout, stderr } = await bench.run(["exec", ...flags, "--", "sh", "-c", script], { env: { PASSED: "on" } });
    expect(stdout).toContain("1 2 on\nfrom outside\n");
    expect(stderr).toContain("/mnt/shown.txt: Read-only file system");
  });

  it("works on a branch of a repository, and takes the worktree away", async () => {
    const repository = createRepository(join(bench.path, "repository"));
    const flags = ["--repo", "repository", "--branch", "topic"];
    const { code, stdout } = await bench.run([
      "exec",
      ...flags,
      "--",
      "sh",
      "-c",
      "cat a.txt; git branch --show-current",
    ]);
    expect({ code, stdout }).toEqual({ code: 0, stdout: "one more\ntopic\n" });
    const layered = await bench.run(["exec", "--repo", "repository", "--workspace", "overlay", "--", "cat", "a.txt"]);
    expect(layered).toMatchObject({ code: 0, stdout: "one more\n" });
    expect(git(repository, "worktree", "list").split("\n")).toHaveLength(1);
    expect(await bench.settled()).toEqual([]);
  });
});

describe("bad input is one line of error and one of hint", () => {
  it.each([
    [["exec", "--memory", "12q", "--", "true"], 2, /^glovebox: --memory takes a size, not "12q"$/],
    [["exec", "ls", "-la"], 2, /^glovebox: exec needs "--" before the command$/],
    [["exce", "--", "ls"], 2, /^glovebox: unknown verb "exce"$/],
    [["exec", "--netwrok", "none", "--", "ls"], 2, /^glovebox: unknown flag "--netwrok" of exec$/],
    [["exec", "--backend", "dokcer", "--", "ls"], 2, /^glovebox: Unknown backend "dokcer"/],
    [["exec", "--id", "nothere", "--", "ls"], 1, /^glovebox: No kept sandbox with the id or name "nothere"$/],
    [["exec", "--id", "../x", "--", "ls"], 2, /^glovebox: Invalid (--)?id/],
    [["exec", "--branch", "x", "--", "ls"], 2, /^glovebox: --branch x needs --repo$/],
    [["exec", "--base-dir", "/no/such", "--", "ls"], 1, /^glovebox: Invalid --base-dir "\/no\/such"/],
    [["exec", "--disk", "2x", "--", "true"], 2, /^glovebox: --disk takes a size, not "2x"$/],
    [["exec", "--pids", "3", "--", "ls"], 2, /^glovebox: Invalid --pids: expected at least 8/],
    [["exec", "--network", "allow=*", "--", "ls"], 2, /^glovebox: Invalid name of --network: expected a name/],
    [["exec", "--mount", "/no/such:/a", "--", "ls"], 1, /^glovebox: Invalid source of --mount "\/no\/such"/],
    [
      ["exec", "--isolation", "none", "--mount", "/usr", "--", "ls"],
      1,
      /^glovebox: The local backend can't enforce mounts without isolation/,
    ],
    [["exec", "--repo", "a\nb\x1b[2J", "--", "ls"], 1, /^glovebox: .*a\\n?n?b\\x1b\[2J/],
    [["exec", "--mount", "/usr:/a:rx", "--", "ls"], 2, /^glovebox: --mount takes a mount, not "\/usr:\/a:rx"$/],
    [["exec", "--name", "../x", "--", "ls"], 2, /^glovebox: Invalid --name/],
    [["exec", "--name", "a/b", "--keep", "--", "ls"], 2, /must match/],
    [["exec", "--label", "novalue", "--", "ls"], 2, /^glovebox: --label takes key=value, not "novalue"$/],
    [["exec", "--label", "a=1", "--label", "a=2", "--", "ls"], 2, /^glovebox: --label a is given twice$/],
    [["exec", "--label", `a=${"x".repeat(256)}`, "--", "ls"], 2, /256 characters, at most 255/],
    [["exec", "--keep=some", "--", "ls"], 2, /^glovebox: --keep takes all, not "some"$/],
    [["exec", "--reopen", "--", "ls"], 2, /^glovebox: --reopen needs --name$/],
    [["rm", "nothere"], 1, /^glovebox: No sandbox with the id or name "nothere"$/],
    [["rm", "Not/An/Id"], 2, /^glovebox: Invalid (--)?id/],
    [["shell"], 2, /^glovebox: shell needs a terminal/],
    [["completion", "tcsh"], 2, /^glovebox: completion takes bash or zsh or fish, not "tcsh"$/],
    [["doctor", "--only", "exec"], 2, /^glovebox: --only needs --conformance$/],
    [["doctor", "--conformance", "local", "--only", ","], 2, /^glovebox: --only names no case$/],
    [["reap", "--backend", "lokal"], 2, /^glovebox: Unknown backend "lokal"/],
    [["help", "exce"], 2, /^glovebox: unknown verb "exce"$/],
  ])("%j", async (args, code, message) => {
    const ended = await bench.run(args);
    const lines = ended.stderr.split("\n");
    expect(ended).toMatchObject({ code, stdout: "" });
    expect(lines[0]).toMatch(message);
    expect(lines[1]).toMatch(/^hint: \S/);
    expect(lines[1]).not.toContain("help <verb>");
    expect(lines.slice(2)).toEqual([""]);
  });

  it("and help with --json is one document, too", async () => {
    const [all, one] = await Promise.all([bench.run(["--help", "--json"]), bench.run(["exec", "--help", "--json"])]);
    expect(JSON.parse(all.stdout)).toContainEqual(JSON.parse(one.stdout));
  });

  it("and with --json also one document", async () => {
    const { code, stdout } = await bench.run(["exec", "--json", "--id", "nothere", "--", "true"]);
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({
      error: { code: "not_found", hint: expect.stringMatching(/\S/) as string },
    });
  });
});

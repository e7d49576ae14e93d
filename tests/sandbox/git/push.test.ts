import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { SandboxEvent } from "../../../contracts/types.js";
import { createLocalSandbox } from "../../../src/sandbox/backends/local.js";
import { withAskpass } from "../../../src/sandbox/git/remote/askpass.js";
import { parsePushUrl } from "../../../src/sandbox/git/remote/remote-url.js";
import type { Sandbox, SandboxOptions } from "../../../src/sandbox/types.js";
import { type GitServer, serveEvil, serveGit, type Trick } from "../../support/git/server.js";
import { filesBelow, readQuietly, watchForToken } from "../../support/processes/token-watch.js";
import { addOrigin, createRemote, createRepository, createScratch, git, type Scratch } from "../../support/scratch.js";

// Nobody else's: the machine's processes are searched for it, and other tests run beside this one.
/** No other run's: the machine's processes are searched for it. */
const TOKEN = `ghp_cHVzaGVkQnlPdXJzZWx2ZXMx${randomBytes(8).toString("hex")}+/=x`;

let scratch: Scratch;
let repo: string;
let remote: string;
let server: GitServer;
let evil: GitServer;
let opened: Sandbox[];
let events: SandboxEvent[];
let trick: Trick;
/** Sets up a repository, its remote and a server that must not be talked to. */
async function setUp(): Promise<void> {
  scratch = createScratch();
  repo = createRepository(join(scratch.path, "repo"));
  remote = createRemote(join(scratch.path, "remotes", "project.git"), repo, "main");
  trick = () => false;
  server = await serveGit(join(scratch.path, "remotes"), TOKEN, (request, response) => trick(request, response));
  evil = await serveEvil();
  addOrigin(repo, `${server.origin}/project.git`);
  opened = [];
  events = [];
}

async function takeDown(): Promise<void> {
  for (const sandbox of opened) await sandbox.teardown();
  await server.close();
  await evil.close();
  scratch.remove();
}

async function open(opts: SandboxOptions = {}): Promise<Sandbox> {
  const sandbox = await createLocalSandbox({
    repo,
    branch: "work",
    ...opts,
    onEvent: (event) => events.push(event),
  });
  opened.push(sandbox);
  return sandbox;
}

async function push(sandbox: Sandbox, branch = "work", token = TOKEN): Promise<{ pushed: boolean; error?: string }> {
  if (sandbox.pushBranch === undefined) throw new Error("there is no pushBranch");
  return await sandbox.pushBranch(branch, token);
}

async function run(sandbox: Sandbox, script: string): Promise<string> {
  const { exitCode, stdout, stderr } = await sandbox.shell(script);
  if (exitCode !== 0) throw new Error(`${script}: ${stderr}`);
  return stdout;
}

describe("pushBranch", () => {
  beforeEach(setUp);
  afterEach(takeDown);

  test("pushes the files as they are, on top of the commits made inside; the local branch and the index follow", async () => {
    const sandbox = await open();
    await run(
      sandbox,
      "printf 1 > one; git add one; git commit -qm one; printf 2 > two; mkdir ignored; printf no > ignored/x",
    );
    expect(await push(sandbox)).toEqual({ pushed: true });
    expect(git(remote, "log", "--format=%s", "work").split("\n")).toEqual([
      `Snapshot of sandbox ${sandbox.id}`,
      "one",
      "second",
      "first",
    ]);
    expect(git(remote, "ls-tree", "-r", "--name-only", "work").split("\n")).toEqual([
      ".gitignore",
      "a.txt",
      "one",
      "sub/b.txt",
      "two",
    ]);
    expect(git(repo, "rev-parse", "work")).toBe(git(remote, "rev-parse", "work"));
    expect(git(sandbox.workDir, "status", "--porcelain")).toBe("");
    expect(await run(sandbox, "git status --porcelain; git rev-parse HEAD")).toBe(
      `${git(remote, "rev-parse", "work")}\n`,
    );
    expect(git(repo, "for-each-ref", "--format=%(refname)", "refs/glovebox")).toBe(`refs/glovebox/${sandbox.id}/held`);
    await sandbox.teardown();
    expect(git(repo, "for-each-ref", "refs/glovebox")).toBe("");
    expect(git(repo, "rev-parse", "work")).toBe(git(remote, "rev-parse", "work"));
    expect(git(repo, "fsck", "--strict", "--no-progress", "--no-dangling")).toBe("");
    expect(git(remote, "fsck", "--strict", "--no-progress")).toBe("");
  });

  test("twice is once; more work goes on top; nothing to commit makes no commit", async () => {
    const sandbox = await open();
    await run(sandbox, "printf 1 > one");
    expect(await push(sandbox)).toEqual({ pushed: true });
    const first = git(remote, "rev-parse", "work");
    expect(await push(sandbox)).toEqual({ pushed: true });
    expect(git(remote, "rev-parse", "work")).toBe(first);
    await run(sandbox, "printf 2 > two; git add -A; git commit -qm two");
    expect(await push(sandbox)).toEqual({ pushed: true });
    expect(git(remote, "log", "--format=%s", "-2", "work")).toBe(`two\nSnapshot of sandbox ${sandbox.id}`);
  });

  test("an untouched sandbox pushes the commit that it started from", async () => {
    expect(await push(await open())).toEqual({ pushed: true });
    expect(git(remote, "rev-parse", "work")).toBe(git(repo, "rev-parse", "main"));
  });

  test("to another branch; the sandbox's own stays", async () => {
    const sandbox = await open();
    await run(sandbox, "printf 1 > one");
    expect(await push(sandbox, "feature/x")).toEqual({ pushed: true });
    expect(git(remote, "show", "feature/x:one")).toBe("1");
    expect(git(repo, "for-each-ref", "--format=%(refname:short)", "refs/heads")).toBe("main\nother\nwork");
    expect(git(repo, "rev-parse", "work")).toBe(git(repo, "rev-parse", "main"));
  });

  test("work of others at the remote is not written over", async () => {
    const sandbox = await open();
    await run(sandbox, "printf 1 > one");
    const clone = join(scratch.path, "clone");
    git(scratch.path, "clone", "--quiet", remote, clone);
    git(clone, "commit", "--quiet", "--allow-empty", "-m", "theirs");
    git(clone, "push", "--quiet", "origin", "HEAD:work");
    const theirs = git(remote, "rev-parse", "work");
    expect(await push(sandbox)).toEqual({ pushed: false, error: expect.stringContaining("does not have") });
    expect([git(remote, "rev-parse", "work"), git(repo, "rev-parse", "work")]).toEqual([
      theirs,
      git(repo, "rev-parse", "main"),
    ]);
  });

  test.each(["GET", "POST"])(
    "a commit that arrives between the look and the push (%s) is not written over",
    async (when) => {
      const sandbox = await open();
      await run(sandbox, "printf 1 > one");
      const theirs = git(remote, "commit-tree", "-m", "theirs", "-p", "main", "main^{tree}");
      trick = ({ method, url = "" }) => {
        if (method === when && url.includes("git-receive-pack")) git(remote, "update-ref", "refs/heads/work", theirs);
        return false;
      };
      expect((await push(sandbox)).pushed).toBe(false);
      expect(git(remote, "rev-parse", "work")).toBe(theirs);
    },
  );

  test("history that the inside rewrote after its own push is written over, by us only", async () => {
    const sandbox = await open();
    await run(sandbox, "printf 1 > one; git add one; git commit -qm one");
    expect(await push(sandbox)).toEqual({ pushed: true });
    await run(sandbox, "git commit -q --amend -m better");
    expect(await push(sandbox)).toEqual({ pushed: true });
    expect(git(remote, "log", "-1", "--format=%s", "work")).toBe("better");
    expect(git(repo, "log", "-1", "--format=%s", "work")).toBe("better");
  });

  test("a local branch that the user moved stays, and that is told", async () => {
    const sandbox = await open();
    await run(sandbox, "printf 1 > one");
    const mine = git(repo, "commit-tree", "-m", "mine", "-p", "main", "main^{tree}");
    git(repo, "update-ref", "refs/heads/work", mine);
    expect(await push(sandbox)).toEqual({ pushed: true });
    expect(git(repo, "rev-parse", "work")).toBe(mine);
    expect(events.filter(({ type }) => type === "warning").map(({ message }) => message)).toEqual([
      expect.stringContaining("local branch stays"),
    ]);
  });

  test("a branch that is checked out elsewhere is a conflict before anything is sent", async () => {
    await expect(push(await open(), "main")).rejects.toMatchObject({ code: "conflict" });
    expect(server.requests).toEqual([]);
  });

  test("without isolation", async () => {
    const sandbox = await open({ isolation: "none" });
    await run(
      sandbox,
      "printf 1 > one; git add one; git -c user.name=a -c user.email=b commit -qm one; printf 2 > two",
    );
    expect(await push(sandbox)).toEqual({ pushed: true });
    expect(git(remote, "log", "-2", "--format=%s", "work")).toBe(`Snapshot of sandbox ${sandbox.id}\none`);
    expect(await run(sandbox, "git status --porcelain")).toBe("");
  });
});

describe("failures of the remote are results, and tell no secret", () => {
  beforeEach(setUp);
  afterEach(takeDown);

  test("a wrong token", async () => {
    const sandbox = await open();
    const result = await push(sandbox, "work", "wrong-token-0123456789");
    expect(result).toEqual({ pushed: false, error: expect.stringMatching(/Authentication failed/) });
    expect(result.error).not.toContain("wrong-token");
  });

  test("nobody there", async () => {
    const sandbox = await open();
    await server.close();
    expect(await push(sandbox)).toEqual({ pushed: false, error: expect.stringMatching(/unable to access|connect/i) });
  });

  test("a remote that echoes the token and speaks to the terminal", async () => {
    const sandbox = await open();
    await run(sandbox, "printf 1 > one");
    const hook = `#!/bin/sh\nprintf 'no \\033]0;owned\\007 ${TOKEN} %s\\n' "$(printf 'x-access-token:${TOKEN}' | base64 -w0)" >&2\nexit 1\n`;
    mkdirSync(join(remote, "hooks"), { recursive: true });
    writeFileSync(join(remote, "hooks", "pre-receive"), hook, { mode: 0o755 });
    const { pushed, error = "" } = await push(sandbox);
    expect(pushed).toBe(false);
    expect(error).toContain("pre-receive hook declined");
    expect(error).toContain("[REDACTED]");
    expect(error).not.toContain(TOKEN);
    expect(error).not.toContain(Buffer.from(`x-access-token:${TOKEN}`).toString("base64"));
    // biome-ignore lint/suspicious/noControlCharactersInRegex: that is what must not be there
    expect(error).not.toMatch(/[\x00-\x08\x0b-\x1f]/);
    expect(git(repo, "rev-parse", "work")).toBe(git(repo, "rev-parse", "main"));
  });

  test("[N-GIT-27] a remote that asks again and again, in another realm, gets nothing else", async () => {
    const sandbox = await open();
    trick = (_, response) => {
      response.writeHead(401, { "WWW-Authenticate": `Basic realm="${evil.origin}"` }).end();
      return true;
    };
    expect(await push(sandbox)).toEqual({ pushed: false, error: expect.stringContaining("Authentication failed") });
    expect(server.requests.length).toBeLessThan(5);
    expect(evil.requests).toEqual([]);
  });

  test.each([301, 302, 307, 308])("[N-GIT-27] a redirect (%i) to another host is not followed", async (status) => {
    const sandbox = await open();
    trick = ({ url }, response) => {
      response.writeHead(status, { Location: `${evil.origin}${url ?? ""}` }).end();
      return true;
    };
    expect((await push(sandbox)).pushed).toBe(false);
    expect(evil.requests).toEqual([]);
  });
});

describe("what is refused before anything is sent", () => {
  // Of one sandbox: none of these changes anything.
  let sandbox: Sandbox;
  let config: string;
  beforeAll(async () => {
    await setUp();
    sandbox = await open();
    config = readFileSync(join(repo, ".git", "config"), "utf8");
  });
  afterEach(() => writeFileSync(join(repo, ".git", "config"), config));
  afterAll(takeDown);

  test.each([
    "ext::sh -c 'touch /tmp/pwned'",
    "file:///etc",
    "/etc",
    "--upload-pack=touch",
    "-oProxyCommand=touch",
    "ssh://-oProxyCommand=touch/x",
    "git@example.invalid:owner/name.git",
    "git://example.invalid/x.git",
    "http://example.invalid/x.git",
    "http://169.254.169.254/latest",
    "https://user@example.invalid/x.git",
    "https://user:password@example.invalid/x.git",
    "https://example.invalid/x.git?y",
    "https://example.invalid/x\n.git",
    "https://example.invalid",
    "https://exa mple.invalid/x",
    "fd::17",
  ])("[N-GIT-25] the URL %j", async (url) => {
    expect(() => parsePushUrl(url)).toThrow(expect.objectContaining({ code: "invalid_argument" }));
    git(repo, "config", "remote.origin.url", url);
    await expect(push(sandbox)).rejects.toMatchObject({ code: "invalid_argument" });
    expect(git(repo, "for-each-ref", "refs/glovebox")).toBe("");
    expect(existsSync("/tmp/pwned")).toBe(false);
  });

  test("a password in the URL is not repeated", () => {
    const secret = "hunter2hunter2";
    expect(() => parsePushUrl(`https://u:${secret}@example.invalid/x`)).toThrow(expect.not.stringContaining(secret));
  });

  test.each([
    ["git@github.com:owner/name.git", "https://github.com/owner/name.git"],
    ["ssh://git@github.com/owner/name", "https://github.com/owner/name.git"],
    ["HTTPS://Example.Invalid:443/x.git", "https://example.invalid/x.git"],
    ["http://[::1]:8080/x", "http://[::1]:8080/x"],
  ])("%s is %s", (url, expected) => {
    expect(parsePushUrl(url).url).toBe(expected);
  });

  test.each([
    "-x",
    "--receive-pack=touch",
    "a..b",
    "x.lock",
    "@",
    "HEAD",
    "refs heads",
    "a b",
    ";id",
    "`id`",
    "|x",
    "ünï",
    "x/",
    "a".repeat(300),
  ])("the branch %j", async (branch) => {
    await expect(push(sandbox, branch)).rejects.toMatchObject({ code: "invalid_argument" });
    expect(server.requests).toEqual([]);
  });

  test.each(["a\nb", "a b", "a\0b", "a\rb", "ä"])("the token %j, which is not repeated", async (token) => {
    const failure = await push(sandbox, "work", `secret${token}`).catch((error: Error) => error);
    expect(failure).toMatchObject({ code: "invalid_argument", message: expect.not.stringContaining("secret") });
    expect(server.requests).toEqual([]);
  });

  test("a repository without a remote", async () => {
    git(repo, "remote", "remove", "origin");
    await expect(push(sandbox)).rejects.toMatchObject({ code: "invalid_argument" });
  });
});

describe("the token", () => {
  beforeEach(setUp);
  afterEach(takeDown);

  test("[N-GIT-28] is in no argument, no variable and no file, during or after the push, whatever the caller's environment says", async () => {
    const sandbox = await open();
    await run(sandbox, "printf 1 > one");
    const home = join(scratch.path, "user");
    mkdirSync(home);
    writeFileSync(
      join(home, ".gitconfig"),
      `[url "${evil.origin}/"]\n\tinsteadOf = ${server.origin}/\n\tpushInsteadOf = ${server.origin}/\n[http]\n\tproxy = ${evil.origin}\n[credential]\n\thelper = store --file=${scratch.path}/stolen\n`,
    );
    const planted = {
      HOME: home,
      http_proxy: evil.origin,
      HTTP_PROXY: evil.origin,
      ALL_PROXY: evil.origin,
      GIT_TRACE: `${scratch.path}/trace`,
      GIT_TRACE_CURL: `${scratch.path}/trace`,
      GIT_CONFIG_COUNT: "1",
      GIT_CONFIG_KEY_0: "http.proxy",
      GIT_CONFIG_VALUE_0: evil.origin,
      GIT_ASKPASS: "/bin/false",
    };
    const before = { ...process.env };
    Object.assign(process.env, planted);
    const watching = watchForToken(TOKEN, [scratch.home]);
    try {
      expect(await push(sandbox)).toEqual({ pushed: true });
    } finally {
      for (const name of Object.keys(planted)) delete process.env[name];
      Object.assign(process.env, before);
    }
    const { seen, looks } = watching.stop();
    expect({ seen, enough: looks > 5 }).toEqual({ seen: [], enough: true });
    expect(evil.requests).toEqual([]);
    expect([existsSync(join(scratch.path, "stolen")), existsSync(join(scratch.path, "trace"))]).toEqual([false, false]);
    for (const path of [...filesBelow(join(repo, ".git")), ...filesBelow(sandbox.workDir)]) {
      expect(readQuietly(path)).not.toContain(TOKEN);
    }
    expect(JSON.stringify(events)).not.toContain(TOKEN);
  });

  test("is answered to exactly one scheme, host, port and user, and to nothing else", async () => {
    const target = parsePushUrl("https://example.invalid:8443/x.git");
    await withAskpass(join(scratch.path, "askpass"), target, TOKEN, async ({ extraFile = 0, env }) => {
      const ask = (prompt: string): string =>
        String(spawnSync(env["GIT_ASKPASS"] ?? "", [prompt], { stdio: ["ignore", "pipe", "pipe", extraFile] }).stdout);
      expect(ask("Username for 'https://example.invalid:8443': ")).toBe("x-access-token\n");
      for (let time = 0; time < 2; time++) {
        expect(ask("Password for 'https://x-access-token@example.invalid:8443': ")).toBe(TOKEN);
      }
      const others = [
        ...[
          "https://evil.invalid",
          "https://example.invalid",
          "http://example.invalid:8443",
          "https://example.invalid:84431",
        ],
        ...["https://example.invalid:8443.evil.invalid", "https://example.invalid:8443@evil.invalid", ""],
      ];
      for (const origin of others) {
        const withUser = origin.replace("://", "://x-access-token@");
        expect([ask(`Username for '${origin}': `), ask(`Password for '${withUser}': `)]).toEqual(["", ""]);
      }
      for (const prompt of ["Password for 'https://somebody@example.invalid:8443': ", "Password: ", "", "*"]) {
        expect([prompt, ask(prompt)]).toEqual([prompt, ""]);
      }
    });
    expect(existsSync(join(scratch.path, "askpass"))).toBe(false);
  });

  test("[N-GIT-26] is not sent by settings of the repository that lead elsewhere", async () => {
    for (const [key, value] of [
      [`url.${evil.origin}/.insteadOf`, `${server.origin}/`],
      [`url.${evil.origin}/.pushInsteadOf`, `${server.origin}/`],
      ["http.proxy", evil.origin],
      [`http.${server.origin}/.proxy`, evil.origin],
      ["remote.origin.proxy", evil.origin],
      ["remote.origin.pushurl", `${evil.origin}/project.git`],
      ["credential.helper", `!touch ${scratch.path}/canary; cat >${scratch.path}/stolen; true`],
      ["core.askPass", `${scratch.path}/evil-askpass`],
      ["http.extraHeader", "X-Evil: 1"],
      ["http.curloptResolve", `example.invalid:443:${new URL(evil.origin).hostname}`],
      ["http.cookieFile", `${scratch.path}/cookies`],
      ["http.saveCookies", "true"],
      ["http.sslVerify", "false"],
      ["core.hooksPath", `${scratch.path}/hooks`],
    ] as const) {
      git(repo, "config", key, value);
    }
    mkdirSync(join(scratch.path, "hooks"));
    for (const hook of ["pre-push", "reference-transaction", "post-index-change"]) {
      writeFileSync(join(scratch.path, "hooks", hook), `#!/bin/sh\ntouch ${scratch.path}/canary\n`, { mode: 0o755 });
    }
    const sandbox = await open();
    await run(sandbox, "printf 1 > one");
    expect(await push(sandbox)).toEqual({ pushed: true });
    expect(evil.requests).toEqual([]);
    expect([existsSync(join(scratch.path, "canary")), existsSync(join(scratch.path, "stolen"))]).toEqual([
      false,
      false,
    ]);
  });
});

describe("defaultBranch", () => {
  beforeEach(setUp);
  afterEach(takeDown);

  test("as the repository remembers it, else as the remote says, else the current one", async () => {
    const sandbox = await open({ githubToken: TOKEN });
    git(remote, "branch", "trunk", "main");
    git(remote, "symbolic-ref", "HEAD", "refs/heads/trunk");
    expect(await sandbox.defaultBranch()).toBe("trunk");
    git(repo, "update-ref", "refs/remotes/origin/develop", "main");
    git(repo, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/develop");
    expect(await sandbox.defaultBranch()).toBe("develop");
    git(repo, "symbolic-ref", "--delete", "refs/remotes/origin/HEAD");
    git(repo, "remote", "remove", "origin");
    expect(await sandbox.defaultBranch()).toBe("main");
  });

  test("is unsupported without a repository, and so is pushBranch", async () => {
    const sandbox = await createLocalSandbox();
    opened.push(sandbox);
    for (const call of [sandbox.pushBranch("topic", "token"), sandbox.defaultBranch()]) {
      await expect(call).rejects.toMatchObject({ code: "unsupported" });
    }
  });
});

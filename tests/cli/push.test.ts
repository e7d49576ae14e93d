import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Bench, createBench } from "../support/cli.js";
import { type GitServer, serveGit } from "../support/git/server.js";
import { createRepository, git } from "../support/scratch.js";

const TOKEN = "ghp_Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MA";
let bench: Bench;
let remote: string;
let server: GitServer;
let id: string;
beforeAll(async () => {
  bench = createBench();
  const repo = createRepository(join(bench.path, "repo"));
  remote = join(bench.path, "remotes", "project.git");
  mkdirSync(remote, { recursive: true });
  git(remote, "init", "--quiet", "--bare", "--initial-branch=main");
  git(remote, "config", "http.receivepack", "true");
  server = await serveGit(join(bench.path, "remotes"), TOKEN);
  git(repo, "remote", "add", "origin", `${server.origin}/project.git`);
  const line = [
    "exec",
    "--json",
    "--keep",
    "--repo",
    repo,
    "--branch",
    "work",
    "--",
    "sh",
    "-c",
    "echo new > new; git init -q nested; echo in > nested/file",
  ];
  id = (JSON.parse((await bench.run(line)).stdout) as { sandbox: { id: string } }).sandbox.id;
});
afterAll(async () => {
  await bench.run(["rm", id]);
  await server.close();
  bench.remove();
});

const branches = (): string => git(remote, "for-each-ref", "--format=%(refname:short)");

describe("glovebox push", () => {
  it("needs a branch, and a token that is no argument", async () => {
    const bare = await bench.run(["push", id]);
    expect([bare.code, bare.stderr.split("\n")[0]]).toEqual([2, "glovebox: push needs --branch <name>"]);
    expect(await bench.run(["push", id, "--branch", "work", "--token", TOKEN])).toMatchObject({
      code: 2,
      stderr: 'glovebox: unknown flag "--token" of push\nhint: glovebox help push lists the flags\n',
    });
    const { code, stderr } = await bench.run(["push", id, "--branch", "work"]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^glovebox: No token found: none of GLOVEBOX_TOKEN, GITHUB_TOKEN, GH_TOKEN is set\nhint: /);
    expect(branches()).toBe("");
  });

  it("refuses a token with a line end, and never shows it", async () => {
    const { code, stdout, stderr } = await bench.run(["push", id, "--branch", "work"], {
      env: { GITHUB_TOKEN: `${TOKEN}\nx-evil: 1` },
    });
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(/^glovebox: Invalid token /);
    expect(stderr).not.toContain(TOKEN);
    expect(server.requests).toEqual([]);
  });

  it("says what the remote has against it", async () => {
    const env = { GLOVEBOX_TOKEN: "wrong-token-of-somebody" };
    const { code, stdout, stderr } = await bench.run(["push", id, "--branch", "work", "--json"], { env });
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({ pushed: false, error: expect.any(String) as string });
    expect(stderr).toMatch(/^glovebox: could not push work: /m);
    expect(stdout + stderr).not.toContain("wrong-token");
    expect(branches()).toBe("");
  });

  it("sends a token for GitHub to GitHub alone, whatever the repository calls its origin", async () => {
    const before = server.requests.length;
    const env = { GITHUB_TOKEN: TOKEN };
    const { code, stderr } = await bench.run(["push", id, "--branch", "work"], { env });
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: `glovebox: The remote ${server.origin}/project.git is not on https://github.com, which the token is for\nhint: nothing was sent; if you trust that server, give a token of its own\n`,
    });
    const clone = await bench.run(["exec", "--repo", `${server.origin}/project.git`, "--", "true"], { env });
    expect(clone.code).not.toBe(0);
    const sent = Buffer.from(`x-access-token:${TOKEN}`).toString("base64");
    expect(server.requests.slice(before).filter(({ authorization = "" }) => authorization.includes(sent))).toEqual([]);
  });

  it("pushes the files as they are", async () => {
    const env = { GH_TOKEN: "not-this-one", GLOVEBOX_TOKEN: TOKEN };
    expect(await bench.run(["push", id, "--branch", "work"], { env })).toMatchObject({
      code: 0,
      stdout: "work\n",
      stderr: expect.stringContaining('"nested" is a repository of its own and is not pushed\n') as string,
    });
    expect(git(remote, "show", "work:new")).toBe("new");
  });

  it("takes the URL of a repository, and the token of the environment for it", async () => {
    git(remote, "symbolic-ref", "HEAD", "refs/heads/work");
    const line = ["exec", "--repo", `${server.origin}/project.git`, "--", "cat", "new"];
    const { code, stderr } = await bench.run(line);
    expect([code, stderr]).toEqual([1, expect.stringContaining("GITHUB_TOKEN")]);
    const env = { GITHUB_TOKEN: TOKEN, GITHUB_SERVER_URL: server.origin };
    expect(await bench.run(line, { env })).toMatchObject({ code: 0, stdout: "new\n" });
  });

  it("has nothing to push without a repository", async () => {
    const { stdout } = await bench.run(["exec", "--json", "--keep", "--", "true"]);
    const { id: plain } = (JSON.parse(stdout) as { sandbox: { id: string } }).sandbox;
    const { code, stderr } = await bench.run(["push", plain, "--branch", "work"], { env: { GITHUB_TOKEN: TOKEN } });
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: `glovebox: Sandbox "${plain}" has no repository, so there is nothing to push\nhint: open one with glovebox exec --repo . --keep -- …\n`,
    });
    await bench.run(["rm", plain]);
  });
});

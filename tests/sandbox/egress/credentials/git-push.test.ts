import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createLocalSandbox } from "../../../../src/sandbox/backends/local.js";
import type { Sandbox } from "../../../../src/sandbox/types.js";
import { type PrivateGitServer, startPrivateGitServer } from "../../../support/egress/private-git-server.js";
import { createScratch, git, type Scratch } from "../../../support/scratch.js";

const NAME = "git.secret.test";
const TOKEN = "ghp_real/token+0123456789";

let scratch: Scratch;
let server: PrivateGitServer;
let sandbox: Sandbox;

beforeAll(async () => {
  scratch = createScratch();
  const root = join(scratch.path, "served");
  mkdirSync(root);
  git(root, "init", "-q", "--bare", "-b", "main", "project.git");
  git(join(root, "project.git"), "config", "http.receivepack", "true");
  server = await startPrivateGitServer(scratch.path, NAME, { root, user: "x-access-token", token: TOKEN });
  process.env["TEST_GIT_TOKEN"] = TOKEN;
  const host = `${NAME}:${server.port}`;
  sandbox = await createLocalSandbox({
    network: { allow: [host] },
    secrets: { TEST_GIT_TOKEN: { hosts: [host], git: "x-access-token" } },
  });
});

afterAll(async () => {
  await sandbox.teardown();
  server.close();
  scratch.remove();
  delete process.env["TEST_GIT_TOKEN"];
});

async function run(script: string): Promise<string> {
  const { stdout, stderr, exitCode } = await sandbox.shell(script);
  expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 });
  return stdout;
}

test("git pushes and clones over https with a token that is not inside", async () => {
  const url = `https://${NAME}:${server.port}/project.git`;
  const author = "-c user.name=A -c user.email=a@example.invalid";
  await run(
    `git init -q -b main one && cd one && git ${author} commit -q --allow-empty -m pushed && git push -q ${url} main`,
  );
  expect(git(join(scratch.path, "served", "project.git"), "log", "--format=%s", "main").trim()).toBe("pushed");
  expect(await run(`git clone -q ${url} two && git -C two log --format=%s`)).toBe("pushed\n");
  const placed = Buffer.from(`x-access-token:${TOKEN}`).toString("base64");
  expect(new Set(server.authorizations)).toEqual(new Set([`Basic ${placed}`]));
});

test("what git knows inside is the placeholder", async () => {
  const filled = await run(`printf 'protocol=https\\nhost=${NAME}:${server.port}\\n\\n' | git credential fill`);
  expect(filled).toMatch(/^username=x-access-token\npassword=glovebox\w{32}$/m);
  expect(await run("env; git config --list")).not.toContain(TOKEN);
});

test("another host gets no answer from the helper", async () => {
  const { stdout, exitCode } = await sandbox.shell(
    "printf 'protocol=https\\nhost=other.test\\n\\n' | GIT_TERMINAL_PROMPT=0 git credential fill",
  );
  expect(stdout).not.toContain("password");
  expect(exitCode).not.toBe(0);
});

test("a variable that git's setup needs can't be given twice", async () => {
  const host = `${NAME}:${server.port}`;
  const opened = createLocalSandbox({
    network: { allow: [host] },
    env: { GIT_CONFIG_COUNT: "0" },
    secrets: { TEST_GIT_TOKEN: { hosts: [host], git: "x-access-token" } },
  });
  await expect(opened).rejects.toMatchObject({
    code: "invalid_argument",
    message: "Variable GIT_CONFIG_COUNT is in secrets and in env",
  });
});

import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createLocalSandbox } from "../../../src/sandbox/backends/local.js";
import type { Sandbox } from "../../../src/sandbox/types.js";
import { listSnapshots } from "../../../src/sandbox.js";
import { END, member, pax } from "../../support/git/hostile-tar.js";
import { expectRefused } from "../../support/refused.js";
import { createRepository, createScratch, git, type Scratch } from "../../support/scratch.js";

const GIB = 1024 ** 3;
const TOKEN = "ghp_Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MA";

let scratch: Scratch;
let repo: string;
let sandbox: Sandbox;
beforeEach(async () => {
  scratch = createScratch();
  repo = createRepository(join(scratch.path, "repo"));
  sandbox = await createLocalSandbox({ repo, branch: "work" });
  await sandbox.writeFiles({ "a.txt": "mine", "ignored/i": "ignored", "out/file": "x" });
});
afterEach(async () => {
  await sandbox.teardown();
  scratch.remove();
});

/** Every file inside with its content, and every ref of the source. */
async function state(): Promise<string> {
  const { stdout } = await sandbox.shell(
    "find . -path ./.git -prune -o -type f -print0 | sort -z | xargs -0 head -v -c 100",
  );
  return `${stdout}${git(repo, "for-each-ref")}`;
}

/** Expects a typed refusal that changes nothing inside, in the source or among the snapshots. */
async function expectUnchanged(call: () => Promise<unknown>, code: string, ...words: string[]): Promise<void> {
  const before = [await state(), await listSnapshots()];
  await expectRefused(call(), code, ...words);
  expect([await state(), await listSnapshots()]).toEqual(before);
}

describe("restore", () => {
  test.each(["none-such", "", "../../x", "-x", "a\nb", "x".repeat(5_000)])("of the snapshot %j", async (id) => {
    await expectUnchanged(() => sandbox.restore(id), id === "" ? "invalid_argument" : "not_found");
  });

  test("into a sandbox that is closed, and the snapshot stays", async () => {
    const id = await sandbox.snapshot();
    await sandbox.teardown();
    await expectRefused(sandbox.restore(id), "closed");
    expect((await listSnapshots()).map((snapshot) => snapshot.id)).toEqual([id]);
    const other = await createLocalSandbox({ repo });
    await other.restore(id);
    expect(await other.readFile("ignored/i")).toBe("ignored");
    await other.teardown();
  });

  const zeros = (): Buffer[] => [pax({ size: String(10 * GIB) }), member("zeros", { data: "x" })];
  const hostile: [string, string, () => Buffer[]][] = [
    ["a name that climbs", "path_confinement", () => [member("../../evil", { data: "x" })]],
    ["an absolute name", "path_confinement", () => [member(join(scratch.path, "evil"), { data: "x" })]],
    [
      "a way through a link out",
      "path_confinement",
      () => [member("l", { type: "2", link: scratch.path }), member("l/evil", { data: "x" })],
    ],
    ["a hard link out", "not_regular_file", () => [member("hard", { type: "1", link: "/etc/passwd" })]],
    ["a device", "not_regular_file", () => [member("null", { type: "3" })]],
    ["a sparse file", "not_regular_file", () => [member("sparse", { type: "S" })]],
    ["10 GB of zeros", "limit_exceeded", zeros],
  ];
  test.each(hostile)("of an archive with %s", async (_, code, parts) => {
    const id = await sandbox.snapshot();
    await sandbox.writeFile("a.txt", "later");
    const archive = (await listSnapshots())[0]?.archive ?? "";
    writeFileSync(archive, Buffer.concat([member("before", { data: "x" }), ...parts(), END]));
    if (parts === zeros) truncateSync(archive, 10 * GIB + 4096);
    await expectUnchanged(() => sandbox.restore(id), code);
    expect(await sandbox.readFile("a.txt")).toBe("later");
    expect((await sandbox.listDirectory()).filter((name) => name.startsWith(".glovebox"))).toEqual([]);
    expect(readdirSync(scratch.path).sort()).toEqual(["home", "repo"]);
  });
});

describe("exportDirectory", () => {
  test("onto a directory that is not empty, a file, a link to an empty one, a link to nothing", async () => {
    const at = (name: string): string => join(scratch.path, "host", name);
    for (const name of ["full", "empty"]) mkdirSync(at(name), { recursive: true });
    writeFileSync(at("full/mine"), "mine");
    symlinkSync(at("empty"), at("link"));
    symlinkSync(at("nothing"), at("dangling"));
    await expectUnchanged(() => sandbox.exportDirectory("out", at("full")), "conflict", at("full"), "not empty");
    await expectUnchanged(() => sandbox.exportDirectory("out", at("full/mine")), "conflict", "not a directory");
    await expectUnchanged(() => sandbox.exportDirectory("out", at("link")), "conflict", "symbolic link");
    await expectUnchanged(() => sandbox.exportDirectory("out", at("dangling")), "conflict", "symbolic link");
    expect(readdirSync(join(scratch.path, "host")).sort()).toEqual(["dangling", "empty", "full", "link"]);
    expect([readdirSync(at("full")), readdirSync(at("empty"))]).toEqual([["mine"], []]);
    expect([readFileSync(at("full/mine"), "utf8"), readlinkSync(at("link"))]).toEqual(["mine", at("empty")]);
  });

  test("into its own directory, where the inside could lead it elsewhere by a link", async () => {
    const victim = join(scratch.path, "victim");
    mkdirSync(victim);
    await sandbox.shell(`ln -s ${victim} way`);
    for (const path of [join(sandbox.workDir, "way", "new"), join(sandbox.workDir, "new"), sandbox.workDir]) {
      await expectUnchanged(() => sandbox.exportDirectory("out", path), "conflict", path, "own directory");
    }
    expect(readdirSync(victim)).toEqual([]);
  });

  test("by way of a link that leads out, below parents that are not there: none of them is left", async () => {
    await sandbox.shell("ln -s /etc link");
    const target = join(scratch.path, "new", "deep");
    await expectUnchanged(() => sandbox.exportDirectory("link", target), "path_confinement");
    expect(existsSync(join(scratch.path, "new"))).toBe(false);
  });
});

describe("refreshFromHost", () => {
  test("of more than fits changes nothing, whatever comes before it", async () => {
    const host = join(scratch.path, "host");
    mkdirSync(join(host, "z"), { recursive: true });
    writeFileSync(join(host, "a"), "small");
    writeFileSync(join(host, "z", "zeros"), "");
    truncateSync(join(host, "z", "zeros"), 10 * GIB);
    await expectUnchanged(() => sandbox.refreshFromHost(host, "in"), "limit_exceeded", host);
    expect(await sandbox.stat("in")).toBeNull();
    truncateSync(join(host, "z", "zeros"), 5);
    await sandbox.refreshFromHost(host, "in");
    expect(await sandbox.readFile("in/a")).toBe("small");
  });
});

describe("pushBranch", () => {
  test.each(["ext::sh -c touch% canary", "--upload-pack=touch canary", "-x"])("to the remote %j", async (url) => {
    git(repo, "config", "remote.origin.url", url);
    const config = readFileSync(join(repo, ".git", "config"), "utf8");
    await expectUnchanged(async () => sandbox.pushBranch("work", TOKEN), "invalid_argument", url);
    expect(await sandbox.defaultBranch()).toBe("main");
    expect(readFileSync(join(repo, ".git", "config"), "utf8")).toBe(config);
    expect(existsSync(join(repo, "canary")) || existsSync(join(repo, ".git", "canary"))).toBe(false);
  });

  test.each([`${TOKEN}\n`, `${TOKEN}\nhost=evil.invalid`, `${TOKEN}\r`, ""])("with the token %j", async (token) => {
    git(repo, "config", "remote.origin.url", "https://example.invalid/x.git");
    await expectUnchanged(async () => sandbox.pushBranch("work", token), "invalid_argument", "token");
    const failure = await sandbox.pushBranch("work", token).catch((error: Error) => error.message);
    expect(failure).not.toContain(TOKEN);
  });
});

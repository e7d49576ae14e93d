import { execFile, execFileSync, spawnSync } from "node:child_process";
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type FakeGitHub, serveGitHub } from "../fakes/github.js";
import { installPackage, whyNoPackage } from "../support/run/installed-package.js";
import { SET_UP_LIMIT } from "../support/run/set-up-limit.js";
import { git } from "../support/scratch.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const page = readFileSync(join(root, "docs", "tutorial.md"), "utf8");
const blocks = [...page.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, block = ""]) => block);

/** How each block must end: the start of its first line, its exit code, what it prints. */
const ENDS: readonly [start: string, code: number, prints: RegExp][] = [
  ["sudo apt-get", 0, /^\/\S*bwrap\n\/\S*git\n$/],
  ["npm install --global", 0, /^$/],
  ["glovebox doctor local", 0, /The default backend, local, works\.\n$/],
  ["glovebox exec -- echo", 0, /^hello\n$/],
  ["glovebox exec -- cat", 1, /^cat: \/etc\/shadow: No such file or directory\n$/],
  ["glovebox exec -- git", 128, /Could not resolve host: github\.com\n/],
  ["mkdir cart", 0, /^$/],
  ["glovebox exec --repo", 1, /5 == 10/],
  ["glovebox run test-and-report", 1, /\nFAILED in .*report\.html\n/s],
  ["glovebox show look", 0, /run look · failed/],
  ["export ANTHROPIC_API_KEY", 0, /\nSUCCESS in .* 1 file \+1 −1\n/s],
  [
    "glovebox diff",
    0,
    /^-.*item\.price, 0.*^\+.*item\.price \* item\.count, 0.*^fix\/cart\n.*\n[0-9a-f]+ \[harness\] Two of/ms,
  ],
  ["git remote add", 0, /^$/],
  ["export GITHUB_TOKEN", 0, /\/pull\/1\n/],
  ["glovebox run bug-fix", 0, /\/pull\/2\n/],
  ["glovebox rm", 0, /^[0-9a-f]{16}\n/],
];

/** Users who type it, and the ids that they have; far from what distributions hand out. */
const USERS: readonly [name: string, id: number | undefined][] =
  process.getuid?.() === 0
    ? [
        ["root", undefined],
        ["an ordinary user", 63_000 + (process.pid % 2_000)],
      ]
    : [["an ordinary user", undefined]];

let installed: string;
beforeAll(() => {
  const reason = whyNoPackage();
  if (reason !== undefined) throw new Error(reason);
  installed = join(installPackage().place, "node_modules");
}, SET_UP_LIMIT);

describe("the tutorial", () => {
  let place: string;
  let home: string;
  let github: FakeGitHub;

  beforeEach(async () => {
    place = realpathSync(mkdtempSync(join(tmpdir(), "glovebox-tutorial-")));
    chmodSync(place, 0o755);
    home = join(place, "home");
    for (const folder of [home, join(place, "remotes")]) mkdirSync(folder);
    github = await serveGitHub(join(place, "remotes"), "main");
  });
  afterEach(async () => {
    await github[Symbol.asyncDispose]();
    rmSync(place, { recursive: true, force: true });
  });

  test("has no command that this test does not know", () => {
    expect(blocks.map((block, at) => block.startsWith(ENDS[at]?.[0] ?? "?") || block)).toEqual(ENDS.map(() => true));
  });

  test.for(USERS)("works as %s, line by line", async ([, id], { skip }) => {
    const user = id === undefined ? {} : { uid: id, gid: id };
    if (spawnSync(process.execPath, ["--version"], user).status !== 0)
      return skip("this Node is where only root can start it");
    install(home);
    signIn(home, github);
    if (id !== undefined) execFileSync("chown", ["--recursive", `${id}:${id}`, home]);
    const script = blocks.map((block, at) => `${standIn(block, github)}\nprintf '\\n@@ ${at} %s\\n' $?\n`).join("");
    const env = {
      PATH: `${dirname(process.execPath)}:/usr/local/bin:/usr/bin:/bin`,
      ...{ HOME: home, TMPDIR: join(home, "tmp"), LANG: "C.UTF-8" },
      GITHUB_SERVER_URL: github.env.GITHUB_SERVER_URL,
      GITHUB_API_URL: github.env.GITHUB_API_URL,
    };
    const output = await new Promise<string>((resolve) => {
      const child = execFile("sh", ["-c", `exec 2>&1\n${script}`], { cwd: home, env, ...user }, (_, stdout) =>
        resolve(stdout),
      );
      child.stdin?.end();
    });
    const ends = output.split(/\n@@ \d+ (\d+)\n/);
    expect(ENDS.map(([start], at) => [start, ends[2 * at + 1], ends[2 * at]])).toEqual(
      ENDS.map(([start, code, prints]) => [start, `${code}`, expect.stringMatching(prints)]),
    );
    expect(github.pulls.map(({ title, base, draft }) => ({ title, base, draft }))).toEqual(
      Array(2).fill({ title: "[harness] Two of one thing must cost twice as much.", base: "main", draft: false }),
    );
    expect(git(github.remote, "diff", "--name-only", "main", github.pulls[0]?.head ?? "")).toBe("cart.js");
    const cart = (ref: string): string => git(github.remote, "show", `${ref}:cart.js`);
    expect([cart("main"), cart(github.pulls[0]?.head ?? "")].map((text) => text.includes("count"))).toEqual([
      false,
      true,
    ]);
  });
});

/** Puts the package where npm would, and beside it a program that stands in for the agent and knows the fix. */
function install(home: string): void {
  const prefix = join(home, ".local", "glovebox");
  mkdirSync(join(prefix, "bin"), { recursive: true });
  mkdirSync(join(home, "tmp"));
  cpSync(installed, join(prefix, "lib", "node_modules"), { recursive: true, verbatimSymlinks: true });
  execFileSync("ln", ["-s", "../lib/node_modules/glovebox/dist/src/cli.js", join(prefix, "bin", "glovebox")]);
  const agent = readFileSync(join(root, "tests", "fakes", "programs", "agent.sh"), "utf8");
  const fix = "fake: sh sed -i 's/item.price,/item.price * item.count,/' cart.js";
  const knowing = agent.replace("prompt=$(cat)", () => `cat > /dev/null\nprompt="${fix}"`);
  expect(knowing).not.toBe(agent);
  writeFileSync(join(prefix, "bin", "claude"), knowing, { mode: 0o755 });
}

/** Lets the user's own git push, as somebody has it who works with GitHub. */
function signIn(home: string, { env }: FakeGitHub): void {
  const url = new URL(env.GITHUB_SERVER_URL);
  url.username = "git";
  url.password = encodeURIComponent(env.GITHUB_TOKEN);
  writeFileSync(join(home, ".git-credentials"), `${url.href}\n`, { mode: 0o600 });
  writeFileSync(join(home, ".gitconfig"), "[credential]\n\thelper = store\n");
}

/** A block with stand-ins for the two installers, for the repository on GitHub and for the token. */
function standIn(block: string, { url, env }: FakeGitHub): string {
  const replaced: readonly [string | RegExp, string][] = [
    [/^sudo apt-get .*$/m, "command -v bwrap && command -v git"],
    [/^npm install .*\n/m, ""],
    ["https://github.com/YOU/cart.git", url],
    ["github_pat_...", env.GITHUB_TOKEN],
  ];
  return replaced.reduce((text, [from, to]) => text.replace(from, () => to), block);
}

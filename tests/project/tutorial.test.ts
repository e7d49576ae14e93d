import { execFileSync, spawnSync } from "node:child_process";
import { dirname } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { installPackage } from "../support/run/installed-package.js";
import { RUNTIMES, type Runtime, whyNoRuntime } from "../support/run/runtimes.js";
import { SET_UP_LIMIT } from "../support/run/set-up-limit.js";
import { git } from "../support/scratch.js";
import { whyNoDebian } from "../support/walks/fresh-debian.js";
import { makeReaderPlace } from "../support/walks/reader.js";
import { TUTORIAL } from "../support/walks/steps.js";
import { scriptOf, walk } from "../support/walks/walk.js";

/** Who types it. An ordinary user has an id far from those that distributions give out. */
interface Reader {
  readonly who: string;
  readonly id?: number;
  /** What runs `glovebox`, if not this Node. */
  readonly runtime?: Runtime;
}

const isRoot = process.getuid?.() === 0;
const READERS: readonly Reader[] = [
  // Where there is a fresh Debian, both type it there: `first-hour.machines.ts`.
  ...(isRoot && whyNoDebian() !== undefined ? [{ who: "root" }] : []),
  ...(whyNoDebian() === undefined
    ? []
    : [{ who: "an ordinary user", ...(isRoot ? { id: 63_000 + (process.pid % 2_000) } : {}) }]),
  ...RUNTIMES.map((runtime) => ({ who: `a user of ${runtime.name}`, runtime })),
];

beforeAll(() => void installPackage(), SET_UP_LIMIT);

describe("the tutorial", () => {
  test("has no command that these tests do not know", () => {
    const { commands, works } = TUTORIAL;
    expect(commands.map((command, at) => command.startsWith(works[at]?.[0] ?? "?") || command)).toEqual(
      works.map(() => true),
    );
  });

  test.for(READERS)("works as $who, line by line", async ({ id, runtime }, { skip, signal }) => {
    const missing = runtime && whyNoRuntime(runtime.program);
    if (missing !== undefined) return skip(missing);
    const user = id === undefined ? {} : { uid: id, gid: id };
    if (spawnSync(process.execPath, ["--version"], user).status !== 0)
      return skip("this Node is where only root can start it");
    await using place = await makeReaderPlace({ runtime });
    const { home, github } = place;
    if (id !== undefined) execFileSync("chown", ["--recursive", `${id}:${id}`, home]);
    const env = {
      PATH: `${dirname(process.execPath)}:/usr/local/bin:/usr/bin:/bin`,
      ...{ HOME: home, TMPDIR: `${home}/tmp`, LANG: "C.UTF-8" },
      GITHUB_SERVER_URL: github.env.GITHUB_SERVER_URL,
      GITHUB_API_URL: github.env.GITHUB_API_URL,
    };
    const script = scriptOf([["", TUTORIAL]], github);
    const ends = await walk(["sh", "-c", script], { signal, cwd: home, env, ...user }, TUTORIAL.works);
    expect(ends).toEqual(
      TUTORIAL.works.map(([start, code, prints]) => [start, `${code}`, expect.stringMatching(prints)]),
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

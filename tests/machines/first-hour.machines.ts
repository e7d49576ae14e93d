import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { connect, createServer, type Server } from "node:net";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import type { FakeGitHub } from "../fakes/github.js";
import { describeUnless } from "../support/describe-unless.js";
import { DEBIAN, useEngine, whyNoDocker } from "../support/docker/engine.js";
import { SET_UP_LIMIT } from "../support/run/set-up-limit.js";
import {
  debianRoot,
  enterDebian,
  hasCommand,
  homeOf,
  nodePrefix,
  READER_PATH,
  whyNoDebian,
  whyNoNode,
} from "../support/walks/fresh-debian.js";
import { makeReaderPlace, type ReaderPlace } from "../support/walks/reader.js";
import { README, type Step, TUTORIAL } from "../support/walks/steps.js";
import { type End, scriptOf, walk } from "../support/walks/walk.js";

const WALKS = [
  ["first", README],
  ["", TUTORIAL],
] as const;
const WORKS = [...README.works, ...TUTORIAL.works];
const REFUSED = [...README.refused, ...TUTORIAL.refused];

/** What `walk` gives if each step ends as it should. */
function endsOf(steps: readonly Step[]): unknown[] {
  return steps.map(([start, code, prints]) => [start, `${code}`, expect.stringMatching(prints)]);
}

describe("the readme", () => {
  test("has no command that these tests do not know", () => {
    const known = README.commands.map((command, at) => command.startsWith(README.works[at]?.[0] ?? "?") || command);
    expect(known).toEqual(README.works.map(() => true));
  });
});

describeUnless(whyNoDebian(), "the readme and the tutorial on a fresh Debian", { timeout: 600_000 }, () => {
  beforeAll(async () => {
    await debianRoot();
    nodePrefix();
  }, SET_UP_LIMIT);

  test.concurrent.for([
    { who: "root", id: 0 },
    // An id far from those that distributions give out.
    { who: "an ordinary user", id: 63_000 + (process.pid % 2_000) },
  ])("work as $who, command by command", async ({ id }, { expect, signal }) => {
    await using place = await makeReaderPlace();
    const { home, github } = place;
    const tmp = join(place.path, "tmp");
    mkdirSync(tmp);
    chmodSync(tmp, 0o1777);
    execFileSync("chown", ["--recursive", `${id}:${id}`, home]);
    const { GITHUB_SERVER_URL, GITHUB_API_URL } = github.env;
    const command = await enterDebian(
      { home, tmp, id, env: { GITHUB_SERVER_URL, GITHUB_API_URL } },
      scriptOf(WALKS, github),
    );
    expect(await walk(command, { signal }, WORKS)).toEqual(endsOf(WORKS));
    expect(github.pulls).toHaveLength(2);
    expect(existsSync(join(await debianRoot(), homeOf(id), "first"))).toBe(false);
  });
});

function whyNoContainer(): string | undefined {
  if (!hasCommand("docker")) return "not installed: docker, the command";
  return whyNoDocker(DEBIAN) ?? whyNoNode();
}

describeUnless(whyNoContainer(), "the readme and the tutorial in a container", { timeout: 600_000 }, () => {
  beforeAll(async () => {
    await useEngine(DEBIAN);
    nodePrefix();
  }, SET_UP_LIMIT);

  test.concurrent.for([
    ["default", []],
    ["--cap-drop ALL", ["--cap-drop", "ALL"]],
  ] as const)(
    "%s: refused with a command that starts one where all of it works",
    async ([, options], { expect, signal }) => {
      const refused = await walkInContainer(options, 0, REFUSED, signal);
      expect(refused.ends).toEqual(endsOf(REFUSED));
      const hints = refused.ends.flatMap(
        ([, , printed = ""]) => /start the container with: docker run ([^;'\n]+)/.exec(printed)?.[1]?.trim() ?? [],
      );
      expect(new Set(hints).size).toBe(1);
      const advised = (hints[0] ?? "").split(" ");
      const user = advised.includes("--user") ? 1000 : 0;
      const fixed = await walkInContainer([...options, ...advised], user, WORKS, signal);
      expect(fixed.ends).toEqual(endsOf(WORKS));
      expect([refused.pulls, fixed.pulls]).toEqual([0, 2]);
    },
  );
});

/** Types everything in a container that is started with these options, by a user whose home is a volume. */
async function walkInContainer(
  options: readonly string[],
  id: number,
  steps: readonly Step[],
  signal: AbortSignal,
): Promise<{ ends: End[]; pulls: number }> {
  await using place = await makeReaderPlace();
  const { home, github } = place;
  execFileSync("chown", ["--recursive", `${id}:${id}`, home]);
  await using _relay = await relayGitHub(place);
  const { GITHUB_SERVER_URL, GITHUB_API_URL } = github.env;
  const env = { PATH: READER_PATH, HOME: "/home/reader", LANG: "C.UTF-8", GITHUB_SERVER_URL, GITHUB_API_URL };
  const script = `mkfifo /tmp/ready; node /place/relay.cjs > /tmp/ready & read _ < /tmp/ready\n${scriptOf(WALKS, github)}`;
  const ends = await walk(
    [
      ...(["docker", "run", "--rm", "--init", "--network", "none"] as const),
      ...["-v", `${nodePrefix()}:/opt/node:ro`, "-v", `${place.path}:/place:ro`, "-v", `${home}:/home/reader`],
      ...Object.entries(env).flatMap(([name, value]) => ["-e", `${name}=${value}`]),
      ...[...options, DEBIAN, "sh", "-c", script],
    ],
    { signal },
    steps,
  );
  return { ends, pulls: github.pulls.length };
}

/** Makes the fake GitHub reachable in a container without a network, at the same address: through a socket in the place. */
async function relayGitHub({
  path,
  github,
}: { path: string; github: FakeGitHub } & ReaderPlace): Promise<AsyncDisposable> {
  const port = Number(new URL(github.env.GITHUB_SERVER_URL).port);
  const socket = join(path, "github.sock");
  const server: Server = createServer((client) => {
    const upstream = connect(port, "127.0.0.1");
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const)
      one.on("error", () => other.destroy()).pipe(other);
  });
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  chmodSync(socket, 0o777);
  writeFileSync(
    join(path, "relay.cjs"),
    `const { connect, createServer } = require("node:net");
     const server = createServer((client) => {
       const upstream = connect("/place/github.sock");
       for (const [one, other] of [[client, upstream], [upstream, client]]) one.on("error", () => other.destroy()).pipe(other);
     });
     server.listen(${port}, "127.0.0.1", () => console.log("ready"));`,
  );
  return { [Symbol.asyncDispose]: async () => void (await new Promise((resolve) => server.close(resolve))) };
}

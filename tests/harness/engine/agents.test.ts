import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { BlueprintSpec } from "../../../src/harness/types.js";
import { openSandbox } from "../../../src/sandbox.js";
import { only, runInSandbox, told, useSandbox } from "../../support/harness/engine-run.js";
import { withFakeAgents } from "../../support/harness/fake-agents.js";

const place = useSandbox((path) => withFakeAgents(path));
const secrets = {
  ANTHROPIC_API_KEY: "sk-very-secret-value",
  CODEX_API_KEY: "codex-key-value",
  OTHER: "not-for-everyone",
};

/** One agent node. */
function ask(prompt: string, more: Record<string, unknown> = {}): BlueprintSpec {
  return { name: "ask", nodes: [{ kind: "agent", id: "work", prompt, retry: { backoff: 1 }, ...more }] };
}

describe("an agent node, with a program that speaks as", () => {
  test.each([
    ["claude-code", "2.1.325", 0.25, { input: 10, output: 5, cacheRead: 2, cacheWrite: 1 }],
    ["codex", "0.166.0", null, { input: 10, output: 5, cacheRead: 2, cacheWrite: 0 }],
    ["pi", "1.5.0", 0.5, { input: 20, output: 10, cacheRead: 4, cacheWrite: 2 }],
  ])("%s, gives its answer, version, tokens and cost", async (agent, version, costUsd, usage) => {
    const { outcome, events } = await runInSandbox(place.sandbox, ask("fake: say all is well", { agent }), { secrets });
    const [node] = outcome.nodes;
    expect(outcome.status).toBe("success");
    expect(node).toMatchObject({ status: "success", output: "all is well" });
    expect(node?.agent).toMatchObject({ name: agent, version, sessionId: "s-1", costUsd, usage });
    expect(outcome.tokenUsage).toEqual(usage);
    expect(outcome.cost).toEqual({ usd: costUsd, unpriced: costUsd === null ? ["work"] : [] });
    expect(only(events, "agent.message").map(({ text }) => text)).toContain("all is well");
    expect(only(events, "node.output").some(({ stream }) => stream === "transcript")).toBe(true);
  });

  test.concurrent.each(["claude-code", "codex", "pi"])(
    "%s, which never ends after its last word, is ended, and succeeded",
    async (agent) => {
      // The grace is ten seconds; all three wait at the same time.
      const { outcome } = await runInSandbox(place.sandbox, ask("fake: say ready\nfake: hang", { agent }), { secrets });
      expect(outcome.status).toBe("success");
      expect(outcome.nodes[0]?.output).toBe("ready");
    },
  );

  test.concurrent("claude-code, which works on after a result, is not ended, and its last one counts", async () => {
    const prompt = "fake: more I wait for my subagents\nfake: say all of it is done";
    const { outcome } = await runInSandbox(place.sandbox, ask(prompt), { secrets });
    expect(outcome).toMatchObject({ status: "success", nodes: [{ output: "all of it is done" }] });
  });

  test.concurrent("claude-code, which announces more work and then falls silent, succeeded", async () => {
    const spec = ask("fake: more this is all", { limits: { idle: 2_000 } });
    const { outcome } = await runInSandbox(place.sandbox, spec, { secrets });
    expect(outcome).toMatchObject({ status: "success", limitsHit: [], nodes: [{ output: "this is all" }] });
  });

  test.concurrent("claude-code, which crashes while it works on after a result, has crashed", async () => {
    const spec = ask("fake: more I wait for my subagents\nfake: crash", { retry: { max: 0 } });
    const { outcome } = await runInSandbox(place.sandbox, spec, { secrets });
    expect(outcome).toMatchObject({ status: "error", nodes: [{ error: { code: "crash" } }] });
  });
});

describe("an agent", () => {
  test("gets the prompt by stdin, its flags, and only the secrets that it or its node names", async () => {
    const prompt = "fake: sh env > seen.txt\n{{ intent }}";
    const spec = ask(prompt, {
      env: { FAKE_ARGV: "argv.txt", MINE: "{{ branch }}" },
      model: "m-7",
      tools: ["Read", "Bash(npm test*)"],
    });
    const { outcome } = await runInSandbox(place.sandbox, spec, {
      secrets,
      context: { env: { CI: "1" } },
      limits: { costUsd: 3, turns: 9 },
    });
    expect(outcome.status).toBe("success");
    const env = (await place.sandbox.readFile("seen.txt"))?.split("\n") ?? [];
    expect(env).toContain("ANTHROPIC_API_KEY=sk-very-secret-value");
    expect(env).toContain("MINE=harness/0a1b2c3d/x");
    expect(env).toContain("CI=1");
    expect(env.filter((line) => /codex-key-value|not-for-everyone|CLAUDE_CODE_OAUTH_TOKEN/.test(line))).toEqual([]);
    const argv = (await place.sandbox.readFile("argv.txt"))?.trim().split("\n") ?? [];
    expect(argv).toEqual([
      ...["-p", "--output-format", "stream-json", "--verbose", "--strict-mcp-config"],
      ...["--settings", '{"sandbox":{"enabled":false}}', "--model", "m-7"],
      ...["--max-budget-usd", "3.0000", "--max-turns", "9", "--allowedTools", "Read", "Bash(npm test*)"],
    ]);
  });

  test("that prints a secret has it hidden in events, output and transcript", async () => {
    const { outcome, events } = await runInSandbox(
      place.sandbox,
      ask('fake: sh say "key $ANTHROPIC_API_KEY"; last=$ANTHROPIC_API_KEY'),
      { secrets },
    );
    expect(outcome.status).toBe("success");
    expect(JSON.stringify([outcome, events])).not.toContain("sk-very-secret");
    expect(outcome.nodes[0]?.output).toContain("REDACTED");
  });

  test("that says that it failed has failed, also with a subtype of success", async () => {
    const { outcome } = await runInSandbox(place.sandbox, ask("fake: error API Error: 401 Invalid key"), {
      secrets,
    });
    expect(outcome.status).toBe("error");
    expect(outcome.nodes[0]).toMatchObject({ status: "failure", attempt: 1, agent: { failure: "unauthenticated" } });
    expect(outcome.nodes[0]?.error).toMatchObject({ code: "unauthenticated", retryable: false });
  });

  test("is asked again after a failure of the infrastructure, and only then", async () => {
    const spec = ask("fake: once a API Error: 429 rate limit reached\nfake: say second try");
    const { outcome, events } = await runInSandbox(place.sandbox, spec, { secrets });
    expect(outcome.status).toBe("success");
    expect(outcome.nodes[0]).toMatchObject({ attempt: 2, output: "second try" });
    expect(outcome.nodes[0]?.attempts?.map(({ status }) => status)).toEqual(["failure", "success"]);
    expect(only(events, "retry.scheduled")).toMatchObject([
      { nodeId: "work", reason: "rate_limit", delayMs: 1, attempt: 2 },
    ]);
    expect(only(events, "node.started")).toHaveLength(1);
    const other = await runInSandbox(place.sandbox, ask("fake: once b the tests are too hard\nfake: say no"), {
      secrets,
    });
    expect(other.outcome).toMatchObject({ status: "failed", nodes: [{ attempt: 1, error: { code: "agent_error" } }] });
  });

  test("that crashes is asked again, and then the run has an error", async () => {
    const { outcome } = await runInSandbox(place.sandbox, ask("fake: crash", { retry: { max: 1, backoff: 1 } }), {
      secrets,
    });
    expect(outcome).toMatchObject({
      status: "error",
      nodes: [{ attempt: 2, error: { code: "crash", retryable: true } }],
    });
  });

  test("goes on with the session of another node", async () => {
    const { outcome } = await runInSandbox(
      place.sandbox,
      {
        name: "two",
        nodes: [
          { kind: "agent", id: "first", prompt: "fake: say one" },
          { kind: "agent", id: "second", prompt: "fake: say two", continue: "first", env: { FAKE_ARGV: "argv-2.txt" } },
        ],
      },
      { secrets },
    );
    expect(outcome.status).toBe("success");
    expect(await place.sandbox.readFile("argv-2.txt")).toContain("--resume\ns-1\n");
  });

  test("starts a new session where that of an earlier process is gone, and the report says so", async () => {
    const nodes = [
      { kind: "agent", id: "first", prompt: "fake: say one" },
      { kind: "agent", id: "second", prompt: "fake: say two", continue: "first", env: { FAKE_ARGV: "argv-3.txt" } },
    ] as const;
    const spec = { name: "gone", nodes: [...nodes] };
    const { context } = await runInSandbox(place.sandbox, spec, { secrets, until: "first" });
    const again = { secrets, context, startAt: "second", lostSessions: ["first"] };
    const { outcome } = await runInSandbox(place.sandbox, spec, again);
    expect(outcome.status).toBe("success");
    expect(outcome.warnings).toContain("second starts a new session: that of first was not saved");
    expect(await place.sandbox.readFile("argv-3.txt")).not.toContain("--resume");
  });
});

describe("a limit", () => {
  test.each([
    ["idle", "fake: sh echo half > half.txt\nfake: silent", { idle: 2_000 }, { limit: "idle", allowed: 2_000 }],
    ["wall", "fake: sh echo half > half.txt\nfake: silent", { wall: 3_000 }, { limit: "wall", allowed: 3_000 }],
  ])("of %s ends the agent gracefully, keeps the files, and is no failure", async (_name, prompt, limits, hit) => {
    await place.sandbox.deleteFile("half.txt");
    const { outcome, events } = await runInSandbox(place.sandbox, ask(prompt, { limits }), { secrets });
    expect(outcome).toMatchObject({ status: "limit", endedBy: "work", nodes: [{ status: "limit" }] });
    expect(outcome.limitsHit).toMatchObject([{ nodeId: "work", ...hit }]);
    expect(only(events, "limit.hit")).toHaveLength(1);
    expect(await place.sandbox.readFile("half.txt")).toBe("half\n");
  });

  test("of silence is reached by an agent that only tells that it has no connection", async () => {
    const spec = ask("fake: reconnect", { agent: "codex", limits: { idle: 500 } });
    const { outcome } = await runInSandbox(place.sandbox, spec, { secrets });
    expect(outcome).toMatchObject({ status: "limit", limitsHit: [{ limit: "idle" }] });
  });

  test("of the run's time ends whatever runs", async () => {
    const { outcome, events } = await runInSandbox(place.sandbox, ask("fake: silent"), {
      secrets,
      limits: { wall: 1_500 },
    });
    expect(only(events, "limit.warning")).toMatchObject([{ limit: "wall", nodeId: "work", allowed: 1_500 }]);
    expect(outcome).toMatchObject({ status: "limit", nodes: [{ status: "limit" }], limitsHit: [{ limit: "wall" }] });
  });

  test("of turns is kept from outside too", async () => {
    const prompt = "fake: say 1\nfake: say 2\nfake: say 3\nfake: silent";
    const { outcome } = await runInSandbox(place.sandbox, ask(prompt, { limits: { turns: 2 } }), { secrets });
    expect(outcome).toMatchObject({ status: "limit", limitsHit: [{ limit: "turns", allowed: 2, used: 3 }] });
  });

  test("of cost ends an agent that tells it while it works", async () => {
    const spec = ask("fake: cost 5\nfake: say dear\nfake: silent", { agent: "pi", limits: { costUsd: 1 } });
    const { outcome } = await runInSandbox(place.sandbox, spec, { secrets });
    expect(outcome).toMatchObject({ status: "limit", limitsHit: [{ limit: "cost", allowed: 1, used: 5 }] });
  });

  test.each([
    ["costUsd", "cost", 0.8, 1],
    ["turns", "turns", 2, 2],
  ])("of %s of a node is for all its tries together", async (name, limit, allowed, used) => {
    const prompt = `fake: cost 1\nfake: once tries-${limit} API Error: 429 x\nfake: say never`;
    const { outcome } = await runInSandbox(place.sandbox, ask(prompt, { limits: { [name]: allowed } }), { secrets });
    expect(outcome).toMatchObject({ status: "limit", limitsHit: [{ limit, nodeId: "work", allowed, used }] });
    expect(outcome.nodes[0]?.attempts?.map(({ status }) => status)).toEqual(["failure", "limit"]);
    expect(outcome.cost).toEqual({ usd: 1, unpriced: [] });
  });

  test("of cost that can't be watched gives a warning, and the cost is not taken for nothing", async () => {
    const spec = ask("fake: cost 0\nfake: say one\nfake: say two", { agent: "pi", limits: { costUsd: 1 } });
    const { outcome } = await runInSandbox(place.sandbox, spec, { secrets });
    expect(outcome).toMatchObject({ status: "success", cost: { usd: null, unpriced: ["work"] } });
    const warning = "pi knows no price of its model, so the limit of $1 does not end it";
    expect(outcome.warnings.filter((each) => each === warning)).toHaveLength(1);
    const unlimited = await runInSandbox(place.sandbox, ask("fake: cost 0\nfake: say x", { agent: "pi" }), { secrets });
    expect(unlimited.outcome.warnings).not.toContain(warning);
  });

  test("that the agent keeps itself is the same limit", async () => {
    const { outcome } = await runInSandbox(place.sandbox, ask("fake: subtype error_max_turns\nfake: error stopped"), {
      secrets,
    });
    expect(outcome).toMatchObject({ status: "limit", limitsHit: [{ limit: "turns" }] });
  });

  test("of cost holds for all agents together", async () => {
    const spec: BlueprintSpec = {
      name: "three",
      limits: { costUsd: 0.4 },
      nodes: ["a", "b", "c"].map((id) => ({ kind: "agent", id, prompt: "fake: say x", agent: "claude-code" })),
    };
    const { outcome, events } = await runInSandbox(place.sandbox, spec, { secrets });
    expect(outcome.status).toBe("limit");
    expect(told(outcome)).toEqual(["a success", "b success", "c limit"]);
    expect(outcome.limitsHit).toMatchObject([{ limit: "cost", nodeId: "c", allowed: 0.4, used: 0.5 }]);
    expect(only(events, "limit.warning")).toMatchObject([{ limit: "cost", nodeId: "b", allowed: 0.4, used: 0.5 }]);
    expect(outcome.cost.usd).toBe(0.5);
  });
});

test("an abort ends the agent and the run is cancelled", async () => {
  const controller = new AbortController();
  const running = runInSandbox(place.sandbox, ask("fake: say go\nfake: silent"), {
    secrets,
    signal: controller.signal,
    onEvent: (event) => {
      if (event.type === "agent.message") controller.abort();
    },
  });
  expect((await running).outcome).toMatchObject({ status: "cancelled", nodes: [{ status: "cancelled" }] });
});

test("what an earlier run has used counts for one that goes on", async () => {
  const spec: BlueprintSpec = {
    name: "resumed",
    limits: { costUsd: 0.3 },
    nodes: ["a", "b", "c"].map((id) => ({ kind: "agent", id, prompt: "fake: say x", needs: id === "a" ? [] : ["a"] })),
  };
  const first = await runInSandbox(place.sandbox, spec, { secrets, until: "a" });
  const second = await runInSandbox(place.sandbox, spec, {
    secrets,
    startAt: "b",
    context: { results: first.context.results },
  });
  expect(second.outcome.cost.usd).toBe(0.5);
  expect(told(second.outcome)).toEqual(["a success", "b success", "c limit"]);
  const fresh = await runInSandbox(place.sandbox, spec, { secrets, startAt: "b", until: "b" });
  expect(told(fresh.outcome)).toEqual(["b success"]);
});

test("what all tries of a node have used is in its report, and counts when the run goes on", async () => {
  const nodes: BlueprintSpec["nodes"] = [
    ...ask("fake: cost 0.5\nfake: once paid API Error: 429 x\nfake: say done").nodes,
    { kind: "agent", id: "next", prompt: "fake: cost 0.5\nfake: say next" },
  ];
  const first = await runInSandbox(place.sandbox, { name: "tries", nodes }, { secrets, until: "work" });
  const [work] = first.outcome.nodes;
  expect(work).toMatchObject({ attempt: 2, attempts: [{ costUsd: 0.5 }, { costUsd: 0.5 }] });
  expect(work?.agent).toMatchObject({ costUsd: 1, turns: 5, usage: { input: 20, output: 10 } });
  expect(first.outcome.cost).toEqual({ usd: 1, unpriced: [] });
  const { results } = first.context;
  const again = { secrets, startAt: "next", context: { results } };
  const second = await runInSandbox(place.sandbox, { name: "tries", nodes }, again);
  expect(second.outcome.cost).toEqual({ usd: 1.5, unpriced: [] });
  expect(second.outcome.tokenUsage.input).toBe(30);
});

test("a try whose cost is not known makes the cost of its node a lower bound, also when the run goes on", async () => {
  const nodes: BlueprintSpec["nodes"] = [
    ...ask("fake: crash-once\nfake: cost 0.5\nfake: say done").nodes,
    { kind: "command", id: "next", run: ["true"] },
  ];
  const first = await runInSandbox(place.sandbox, { name: "crash", nodes }, { secrets, until: "work" });
  expect(first.outcome.nodes[0]).toMatchObject({ agent: { costUsd: 0.5 }, attempts: [{ costUsd: null }, {}] });
  expect(first.outcome.cost).toEqual({ usd: 0.5, unpriced: ["work"] });
  const { results } = first.context;
  const second = await runInSandbox(
    place.sandbox,
    { name: "crash", nodes },
    { secrets, startAt: "next", context: { results } },
  );
  expect(second.outcome.cost).toEqual({ usd: 0.5, unpriced: ["work"] });
});

test("numbers that are none, or too large to be added up, are not in the report", async () => {
  const usage = '{"type":"usage","usage":{"input":1e308,"output":7},"costUsd":1e308}';
  const command = ["sh", "-c", `echo '${usage}'; echo '{"type":"result","text":"x"}'`];
  const node = (id: string) => ({ id, kind: "agent" as const, agent: "command", command, prompt: "p" });
  const nodes = ["a", "b"].map((id) => ({ ...node(id), output: "events" as const }));
  const { outcome } = await runInSandbox(place.sandbox, { name: "huge", nodes });
  expect(outcome.tokenUsage).toMatchObject({ input: 0, output: 14 });
  expect(outcome.cost).toEqual({ usd: null, unpriced: ["a", "b"] });
});

describe("before the first node", () => {
  test("an agent that is too old is refused with what to do", async () => {
    const { mounts = [], env } = withFakeAgents(join(place.scratch.path, "old"));
    const old = await openSandbox({ backend: "local", mounts, env: { ...env, FAKE_VERSION: "1.0.9" } });
    try {
      const { outcome } = await runInSandbox(old, ask("fake: say x"), { secrets });
      expect(outcome).toMatchObject({ status: "error", nodes: [], error: { code: "missing_dependency" } });
      expect(outcome.error?.message).toBe("claude-code 1.0.9 is too old; 2.1.112 or later is needed");
    } finally {
      await old.teardown();
    }
  });

  test("an agent that is older than the versions that were tried gives a warning, a newer one none", async () => {
    const { mounts = [], env } = withFakeAgents(join(place.scratch.path, "tried"));
    for (const [version, warnings] of [
      ["2.1.200", ["claude-code 2.1.200 is older than 2.1.327, the oldest version that was tried"]],
      ["3.0.0", []],
    ] as const) {
      const sandbox = await openSandbox({ backend: "local", mounts, env: { ...env, FAKE_VERSION: version } });
      try {
        const { outcome, events } = await runInSandbox(sandbox, ask("fake: say x"), { secrets });
        expect(outcome).toMatchObject({ status: "success", warnings, nodes: [{ agent: { version } }] });
        expect(only(events, "warning").map(({ message }) => message)).toEqual(warnings);
      } finally {
        await sandbox.teardown();
      }
    }
  });

  test("what the sandbox needs is set up, so that an agent can be brought", async () => {
    const bare = await openSandbox({ backend: "local", env: { PATH: "/tmp/tools:/usr/bin:/bin" } });
    try {
      const install =
        "mkdir -p /tmp/tools && printf '#!/bin/sh\\necho 9.9.9' > /tmp/tools/claude && chmod +x /tmp/tools/claude";
      const spec = { ...ask("x", { when: "false" }), sandbox: { setup: [["sh", "-c", install]] } };
      const { outcome, events } = await runInSandbox(bare, spec, { secrets });
      expect(outcome.error).toBeUndefined();
      expect(told(outcome)).toEqual(["setup-1 success", "work skipped"]);
      expect(only(events, "agent.version")).toEqual([
        { type: "agent.version", agent: "claude-code", version: "9.9.9" },
      ]);
    } finally {
      await bare.teardown();
    }
  });

  test("an agent that is not there is told with the ways to bring it, and nothing has run", async () => {
    const bare = await openSandbox({ backend: "local", env: { PATH: "/usr/bin:/bin" } });
    try {
      const nodes: BlueprintSpec["nodes"] = [
        { kind: "command", id: "first", run: ["touch", "ran"] },
        ...ask("x").nodes,
      ];
      const { outcome } = await runInSandbox(bare, { name: "bare", nodes }, { secrets });
      expect(outcome).toMatchObject({ status: "error", nodes: [], error: { code: "missing_dependency" } });
      expect(outcome.error?.message).toContain("no program claude");
      expect(outcome.error?.hint).toMatch(
        /sandbox\.image.*sandbox\.mounts.*sandbox\.setup.*npm install -g @anthropic-ai\/claude-code/,
      );
      expect(await bare.stat("ran")).toBeNull();
      const own = ask("x", { agent: "command", command: ["no-such-agent"] });
      expect((await runInSandbox(bare, own)).outcome.error?.message).toContain("no program no-such-agent");
    } finally {
      await bare.teardown();
    }
  });
});

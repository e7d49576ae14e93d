import { describe, expect, test } from "vitest";
import type { BlueprintSpec, NodeSpec } from "../../../src/harness/types.js";
import { openSandbox } from "../../../src/sandbox.js";
import { of, only, runInSandbox, useSandbox } from "../../support/harness/engine-run.js";

const place = useSandbox();

describe("a gate", () => {
  const repair = (script: string, more = {}): Record<string, unknown> => ({
    agent: "command",
    command: ["sh", "-c", `cat > /dev/null; ${script}`],
    ...more,
  });
  const gate = (more: Record<string, unknown>): BlueprintSpec => of({ kind: "gate", id: "green", ...more } as NodeSpec);

  test("that is green asks nobody", async () => {
    const { outcome } = await runInSandbox(
      place.sandbox,
      gate({ checks: [{ id: "t", run: ["true"] }], onFail: repair("exit 1") }),
    );
    expect(outcome.nodes[0]).toMatchObject({ status: "success", rounds: 0, children: [], output: "t: success" });
  });

  test("that recovers is green, though a repair before it failed; the agent sees what failed", async () => {
    const spec = gate({
      checks: [
        { id: "file", shell: "echo looking; test -f two" },
        { id: "other", run: ["true"] },
      ],
      onFail: {
        agent: "command",
        command: [
          "sh",
          "-c",
          "cat > prompt-$(ls | grep -c prompt); if [ -f one ]; then touch two; else touch one; exit 1; fi",
        ],
        max: 3,
      },
    });
    const { outcome, events } = await runInSandbox(place.sandbox, spec);
    expect(outcome.status).toBe("success");
    const [node] = outcome.nodes;
    expect(node).toMatchObject({
      status: "success",
      rounds: 2,
      children: [
        { id: "green/fix-1", status: "failure" },
        { id: "green/fix-2", status: "success" },
      ],
    });
    expect(await place.sandbox.readFile("prompt-0")).toContain(
      "## file: exit code 1\n$ echo looking; test -f two\nlooking\n",
    );
    expect(only(events, "gate.check").map(({ round, check }) => `${round} ${check.id} ${check.status}`)).toEqual([
      ...[
        "0 file failure",
        "0 other success",
        "1 file failure",
        "1 other success",
        "2 file success",
        "2 other success",
      ],
    ]);
    expect(only(events, "node.started").map(({ nodeId, parentId }) => [nodeId, parentId])).toEqual([
      ["green", undefined],
      ["green/fix-1", "green"],
      ["green/fix-2", "green"],
    ]);
  });

  test("that stays red ends after two repairs", async () => {
    const spec = gate({ checks: [{ id: "t", run: ["false"] }], onFail: repair("date +%s%N >> try") });
    const { outcome } = await runInSandbox(place.sandbox, spec);
    expect(outcome).toMatchObject({
      status: "failed",
      nodes: [{ rounds: 2, error: { code: "gate_failed", message: "not passed: t, after 2 of 2 repairs" } }],
    });
  });

  test("ends at once when a repair changed nothing", async () => {
    const { outcome } = await runInSandbox(
      place.sandbox,
      gate({ checks: [{ id: "t", run: ["false"] }], onFail: repair("true", { max: 5 }) }),
    );
    expect(outcome.nodes[0]).toMatchObject({
      rounds: 1,
      error: { message: "not passed: t; the repair changed nothing" },
    });
    const stubborn = await runInSandbox(
      place.sandbox,
      gate({ checks: [{ id: "t", run: ["false"] }], onFail: repair("true", { max: 2, stopIfNoChange: false }) }),
    );
    expect(stubborn.outcome.nodes[0]?.rounds).toBe(2);
  });

  test("is red when a protected path was touched, by whatever name, until it is as it was", async () => {
    await place.sandbox.shell("git mv sub/b.txt moved.txt && echo x > a.txt");
    const protect = ["sub/**"];
    const red = await runInSandbox(place.sandbox, gate({ checks: [{ id: "t", run: ["true"] }], protect }));
    expect(red.outcome.nodes[0]?.checks?.at(-1)).toMatchObject({ id: "protected-paths", status: "failure" });
    expect(red.outcome.nodes[0]?.checks?.at(-1)?.output).toContain("sub/b.txt");
    const green = await runInSandbox(
      place.sandbox,
      gate({ checks: [{ id: "t", run: ["true"] }], protect, onFail: repair("git mv moved.txt sub/b.txt") }),
    );
    expect(green.outcome).toMatchObject({ status: "success", nodes: [{ rounds: 1 }] });
  });

  test("whose paths cannot be watched is refused before the first node", async () => {
    const plain = await openSandbox({ backend: "local" });
    try {
      const { outcome } = await runInSandbox(plain, gate({ checks: [{ id: "t", run: ["true"] }], protect: ["x"] }));
      expect(outcome).toMatchObject({ status: "error", nodes: [], error: { code: "unsupported" } });
    } finally {
      await plain.teardown();
    }
  });
});

describe("a commit", () => {
  test("takes all changes, without hooks, with a subject of one line; nothing to commit is skipped", async () => {
    await place.sandbox.shell(
      "mkdir /tmp/hooks && printf '#!/bin/sh\nexit 1' > /tmp/hooks/prepare-commit-msg && chmod +x /tmp/hooks/* && git config core.hooksPath /tmp/hooks && echo new > 'a new file'",
    );
    const long = `${"é".repeat(200)}\u001b[31m\nsecond line`;
    const spec = of({
      kind: "commit",
      id: "save",
      message: "fix: {{ intent }}",
      author: { name: "A", email: "a@example.invalid" },
    });
    const { outcome } = await runInSandbox(place.sandbox, spec, { context: { intent: long } });
    expect(outcome.nodes[0]).toMatchObject({ status: "success", commit: expect.stringMatching(/^[0-9a-f]{40}$/) });
    expect(outcome.nodes[0]?.output).toContain("a new file");
    const { stdout } = await place.sandbox.exec({ argv: ["git", "log", "-1", "--format=%an|%s"] });
    expect(stdout).toBe(`A|fix: ${"é".repeat(94)}…\n`);
    const again = await runInSandbox(place.sandbox, spec);
    expect(again.outcome.nodes[0]).toMatchObject({ status: "skipped", reason: "there is nothing to commit" });
  });

  test("says what the blueprint says, and nothing that is filled in goes live", async () => {
    await place.sandbox.shell("echo more > 'another file'");
    const spec = of({ kind: "commit", id: "save", message: "closes #7: {{ intent }}" });
    const intent = "ask @user\u202e, closes #12 [skip ci]";
    await runInSandbox(place.sandbox, spec, { context: { intent } });
    const { stdout } = await place.sandbox.exec({ argv: ["git", "log", "-1", "--format=%s"] });
    expect(stdout).toBe("closes #7: ask @ user\\u202e, closes # 12 [ skip ci]\n");
  });
});

import { describe, expect, test } from "vitest";
import type { RunEventBody } from "../../../src/harness/types.js";
import { loadBlueprint, resolveInputs, runBlueprint } from "../../../src/harness.js";
import type { Sandbox } from "../../../src/sandbox/types.js";
import { openSandbox } from "../../../src/sandbox.js";
import { told, useSandbox } from "../../support/harness/engine-run.js";
import { withFakeAgents } from "../../support/harness/fake-agents.js";

const place = useSandbox();

describe("the built-in blueprint", () => {
  const run = async (name: string, inside: Sandbox, inputs: Record<string, string>, intent = "mend it") => {
    const blueprint = await loadBlueprint(name);
    const events: RunEventBody[] = [];
    const context = {
      ...{
        runId: "1",
        blueprint: name,
        workDir: inside.workDir,
        intent,
        repo: place.repo,
        branch: "b",
        push: false,
        sandboxType: "local",
      },
      ...{ inputs: resolveInputs(blueprint, inputs), env: {}, results: {} },
    };
    const secrets = { ANTHROPIC_API_KEY: "sk-very-secret-value" };
    return await runBlueprint(blueprint, {
      sandbox: inside,
      context,
      secrets,
      onEvent: (event) => void events.push(event),
    });
  };

  test("hello greets and looks around", async () => {
    const outcome = await run("hello", place.sandbox, {});
    expect(told(outcome)).toEqual(["greet success", "look success"]);
    expect(outcome.nodes[0]?.output).toContain("mend it");
  });

  test("test-and-report tells how the tests went, green or red, and finds them by itself", async () => {
    const script = "test -f a.txt; echo 'it is all \"fine\"'";
    expect(told(await run("test-and-report", place.sandbox, { test: script }))).toEqual([
      "install skipped",
      "find success",
      "test success",
    ]);
    const red = await run("test-and-report", place.sandbox, {
      install: "touch installed",
      test: "echo broken; exit 4",
    });
    expect(told(red)).toEqual(["install success", "find success", "test failure"]);
    expect(red.nodes[2]?.checks?.[0]).toMatchObject({ exitCode: 4, output: "broken\n" });
    await place.sandbox.writeFile("Makefile", "test:\n\techo made\n");
    expect((await run("test-and-report", place.sandbox, {})).nodes[1]?.output).toBe("make test");
    await place.sandbox.deleteFile("Makefile");
    expect(told(await run("test-and-report", place.sandbox, {})).at(-1)).toBe("find failure");
  });

  test("bug-fix lets an agent mend, proves it, lets it try again, and commits", async () => {
    const inside = await openSandbox({
      backend: "local",
      repo: place.repo,
      branch: "bug-fix",
      ...withFakeAgents(place.scratch.path),
    });
    try {
      const intent = "the total is wrong\nfake: sh if [ -e tried ]; then echo fixed > total; else : > tried; fi";
      const outcome = await run("bug-fix", inside, { test: "grep fixed total" }, intent);
      expect(told(outcome)).toEqual([
        "check-git success",
        "install skipped",
        "fix success",
        "prove success",
        "save success",
      ]);
      expect(outcome.nodes[3]).toMatchObject({
        rounds: 1,
        checks: [{ id: "tests", status: "success" }, { id: "protected-paths" }],
      });
      const { stdout } = await inside.shell("git log -1 --format=%s; git status --porcelain");
      expect(stdout).toBe("fix: the total is wrong\n");
    } finally {
      await inside.teardown();
    }
  });
});

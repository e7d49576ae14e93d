import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { SandboxError } from "../../contracts/errors.js";
import { infraFailureOf } from "../../src/batch/run-blueprint.js";
import type { SimulatedService } from "../fakes/simulated-service.js";
import { createRepository } from "../support/scratch.js";
import { type BatchPlace, createBatchPlace, runAll, serve } from "./batch-place.js";

let place: BatchPlace;
beforeEach(() => {
  place = createBatchPlace();
});
afterEach(() => place.remove());

/** A blueprint that looks for a file, and tasks that run it. */
function runsOf(count: number): { id: string; blueprint: string; repo: string; intent: string }[] {
  const repo = createRepository(join(place.path, "repo"));
  const blueprint = join(place.path, "check.yaml");
  writeFileSync(
    blueprint,
    "version: 1\nname: check\nnodes:\n  - { id: look, kind: command, run: [test, -f, a.txt] }\n",
  );
  return Array.from({ length: count }, (_, at) => ({ id: `run${at}`, blueprint, repo, intent: "look" }));
}

test("a run whose sandbox is lost has no result, and is repeated", async () => {
  const service = serve({
    onCreate: () => {
      throw new SandboxError("backend_lost", "the machine is gone");
    },
  });
  const { results, run } = await runAll({
    tasks: runsOf(1),
    out: place.out,
    backend: service.name,
    retries: 1,
    backoff: 1,
    sandbox: { network: "full" as const },
  });
  expect(results).toEqual([]);
  expect(run.progress).toMatchObject({ infra: 1, retries: 1, causes: { backend_lost: 2 } });
});

test("a run that the backend has no place for waits, and loses no retry", async () => {
  let refusals = 0;
  const service: SimulatedService & { name: string } = serve({
    image: "usual",
    onCreate: (n) => {
      if (n > 3) return;
      refusals += 1;
      throw new SandboxError("unavailable", "429 Too Many Requests", { retryable: true });
    },
  });
  const begun: (number | undefined)[] = [];
  const { run } = await runAll({
    tasks: runsOf(3),
    out: place.out,
    backend: service.name,
    concurrency: 3,
    retries: 0,
    sandbox: { network: "full" as const },
    onStage: (_, stage) => void (stage === "running" && begun.push(service.requests["create"])),
  });
  expect(refusals).toBe(3);
  expect(run.progress).toMatchObject({ done: 3, infra: 0, causes: { unavailable: 3 } });
  // Alone: what the first one fetches, the others find.
  expect(begun[0]).toBe(4);
  expect(readdirSync(join(place.out, "runs")).filter((name) => !name.startsWith("."))).toHaveLength(3);
});

describe("a run that ended with", () => {
  test.each([
    ["error", "backend_lost", false, "backend_lost"],
    ["error", "tampered", false, "tampered"],
    ["error", "internal", false, "internal"],
    ["error", "unauthenticated", false, "unauthenticated"],
    ["error", "missing_dependency", false, "missing_dependency"],
    ["error", "unavailable", true, "unavailable"],
    ["error", "rate_limit", true, "unavailable"],
    ["error", "quota", false, "unavailable"],
  ] as const)("%s and the code %s has no result: the infrastructure failed it", (status, code, retryable, thrown) => {
    const failure = infraFailureOf({ status, error: { code, message: "why", hint: "what helps", retryable } }, false);
    expect(failure).toMatchObject({ code: thrown, message: "why", hint: "what helps" });
  });

  test.each([
    ["error", "unsupported"],
    ["error", "not_found"],
    ["error", "node_threw"],
    ["failed", "command_failed"],
    ["failed", "gate_failed"],
    ["limit", "timed_out"],
  ] as const)("%s and the code %s has a result", (status, code) => {
    expect(infraFailureOf({ status, error: { code, message: "why", retryable: false } }, false)).toBeUndefined();
  });
});

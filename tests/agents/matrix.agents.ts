import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type AgentBench, createAgentBench, whyNoAgent } from "./agent-bench.js";
import { removeApart } from "./apart.js";
import { CASES } from "./cases.js";
import { Stage } from "./stage.js";
import { SUBJECTS } from "./subjects.js";

let bench: AgentBench;
beforeAll(async () => {
  bench = await createAgentBench();
});
afterAll(async () => {
  await removeApart();
  await bench?.[Symbol.asyncDispose]();
});

// Each cell has a model of its own, so several are run at once: most of their time is the waiting of one process for another.
for (const { name, run } of CASES) {
  describe.concurrent(name, () => {
    for (const subject of SUBJECTS) {
      test.concurrent(subject.name, async ({ skip }) => {
        const reason = whyNoAgent(subject.program);
        if (reason !== undefined) return skip(reason);
        await using gateway = await bench.openGateway();
        await run(new Stage(bench, gateway, subject, name));
        // Nothing that a service would refuse, and no request to anybody else.
        expect(gateway.model.faults).toEqual([]);
      });
    }
  });
}

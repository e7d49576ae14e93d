import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { BlockedRequest, NetworkEvent } from "../../../../contracts/types.js";
import { createDockerSandbox } from "../../../../src/sandbox/backends/docker.js";
import { egressInternals } from "../../../../src/sandbox/egress/open-egress.js";
import type { Sandbox } from "../../../../src/sandbox/types.js";
import { openSandbox } from "../../../../src/sandbox.js";
import { describeUnless } from "../../../support/describe-unless.js";
import { BUSYBOX, useEngine, whyNoDocker } from "../../../support/docker/engine.js";
import { type Origin, startOrigin } from "../../../support/egress/origin.js";
import { SET_UP_LIMIT } from "../../../support/run/set-up-limit.js";
import { createScratch } from "../../../support/scratch.js";

const [ONE, TWO] = ["one.test", "two.test"];
const scratch = createScratch();
let origin: Origin;

beforeAll(async () => {
  origin = await startOrigin();
  egressInternals.route = { lookup: async () => ["127.0.0.1"], isReachable: (address) => address === "127.0.0.1" };
});

afterAll(() => {
  delete egressInternals.route;
  origin.close();
  scratch.remove();
});

const entry = (host: string): string => `${host}:${origin.port}`;
/** Through the proxy that commands are given. */
const reaches = async (sandbox: Sandbox, host: string): Promise<boolean> => {
  const request = `GET http://${entry(host)}/ HTTP/1.1\\r\\nHost: ${entry(host)}\\r\\n\\r\\n`;
  const { stdout } = await sandbox.shell(`printf '${request}' | nc $(echo $http_proxy | sed 's,http://,,; s,:, ,')`);
  return stdout.startsWith("HTTP/1.1 200 ");
};

describeUnless(whyNoDocker(BUSYBOX), "the network of an open container", {}, () => {
  beforeAll(() => useEngine(BUSYBOX), SET_UP_LIMIT);

  test("gets other rules, which its forks, a restored one and a reopened one have, too", async () => {
    const sandbox = await createDockerSandbox({ image: BUSYBOX, network: "none", keep: true });
    const snapshot = await sandbox.snapshot();
    expect(await reaches(sandbox, ONE)).toBe(false);
    await sandbox.setNetwork({ allow: [entry(ONE)] });
    expect([await reaches(sandbox, ONE), await reaches(sandbox, TWO)]).toEqual([true, false]);
    await sandbox.setNetwork({ allow: [entry(TWO)] });
    expect([await reaches(sandbox, ONE), await reaches(sandbox, TWO)]).toEqual([false, true]);
    await sandbox.restore(snapshot);
    expect([await reaches(sandbox, ONE), await reaches(sandbox, TWO)]).toEqual([false, true]);
    await using fork = await sandbox.fork();
    expect([await reaches(fork, ONE), await reaches(fork, TWO)]).toEqual([false, true]);
    await sandbox.teardown();
    await using again = await openSandbox({ id: sandbox.id, network: { allow: [entry(TWO)] }, keep: false });
    expect([await reaches(again, ONE), await reaches(again, TWO)]).toEqual([false, true]);
    await using forkAgain = await openSandbox({ id: fork.id });
    await forkAgain.setNetwork("none");
    expect(await reaches(fork, TWO)).toBe(false);
  });

  test("is asked about, and written down", async () => {
    const audit = join(scratch.path, "audit.jsonl");
    const questions: BlockedRequest[] = [];
    const onBlocked = (request: BlockedRequest): "allow" | "deny" => {
      questions.push(request);
      return request.host === ONE ? "allow" : "deny";
    };
    await using sandbox = await createDockerSandbox({ image: BUSYBOX, network: { allow: [] }, onBlocked, audit });
    expect([await reaches(sandbox, ONE), await reaches(sandbox, ONE), await reaches(sandbox, TWO)]).toEqual([
      ...[true, true, false],
    ]);
    expect(questions.map(({ host }) => host)).toEqual([ONE, TWO]);
    const events = (): NetworkEvent[] =>
      readFileSync(audit, "utf8")
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as NetworkEvent);
    await expect
      .poll(() => events().map(({ event, rule }) => `${event} ${rule}`))
      .toEqual([
        ...["open onBlocked", "close onBlocked", `open ${entry(ONE)}`, `close ${entry(ONE)}`, "blocked not_allowed"],
      ]);
  });
});

import { afterAll, beforeAll, expect, test } from "vitest";
import type { SandboxEvent } from "../../../../contracts/types.js";
import { createDockerSandbox } from "../../../../src/sandbox/backends/docker.js";
import { egressInternals } from "../../../../src/sandbox/egress/open-egress.js";
import type { Sandbox } from "../../../../src/sandbox/types.js";
import { removeSandbox } from "../../../../src/sandbox.js";
import { describeUnless } from "../../../support/describe-unless.js";
import { BUSYBOX, useEngine, whyNoDocker } from "../../../support/docker/engine.js";
import { type Origin, startOrigin } from "../../../support/egress/origin.js";
import { SET_UP_LIMIT } from "../../../support/run/set-up-limit.js";

const NAME = "allowed.test";
let origin: Origin;
let network: { allow: string[] };

const fetched = async (sandbox: Sandbox): Promise<string> => {
  const script = `unset http_proxy HTTP_PROXY; wget -q -O - http://${NAME}:${origin.port}/`;
  const { stdout, stderr } = await sandbox.shell(script);
  return stdout + stderr;
};

describeUnless(whyNoDocker(BUSYBOX), "without a proxy, in a container", {}, () => {
  beforeAll(async () => {
    await useEngine(BUSYBOX);
    origin = await startOrigin();
    network = { allow: [`${NAME}:${origin.port}`] };
    egressInternals.route = { lookup: async () => ["127.0.0.1"], isReachable: () => true };
  }, SET_UP_LIMIT);
  afterAll(() => {
    origin?.close();
    delete egressInternals.route;
  });

  test("a static program of BusyBox reaches an allowed name, and no other", async () => {
    const events: SandboxEvent[] = [];
    await using sandbox = await createDockerSandbox({
      image: BUSYBOX,
      network,
      onEvent: (event) => events.push(event),
    });
    expect(await fetched(sandbox)).toBe("hello GET    ");
    expect((await sandbox.shell("cat /etc/resolv.conf")).stdout).toBe("nameserver 127.77.0.1\n");
    expect((await sandbox.shell(`nslookup ${NAME}`)).stdout).toMatch(/Address(?: 1)?: 127\.77\.0\.1/);
    const other = await sandbox.shell("wget -q -O - http://evil.test/", { env: { http_proxy: "" } });
    expect([other.exitCode, other.stderr]).toEqual([1, "wget: bad address 'evil.test'\n"]);
    const warnings = events.filter(({ type }) => type === "warning").map(({ message }) => message);
    expect(warnings).toEqual(["blocked evil.test: network.allow does not have it"]);
  });

  test("so does one in a fork, and in a sandbox that was kept", async () => {
    const kept = await createDockerSandbox({ image: BUSYBOX, network, keep: true });
    const [fork] = await kept.fork({ count: 1 });
    try {
      expect(fork && (await fetched(fork))).toBe("hello GET    ");
      await kept.teardown();
      await using again = await createDockerSandbox({ id: kept.id });
      expect(await fetched(again)).toBe("hello GET    ");
    } finally {
      await fork?.teardown();
      await removeSandbox(kept.id);
    }
  });

  test("a server in the sandbox has every port of all addresses until a name is looked up that leads to it", async () => {
    await using sandbox = await createDockerSandbox({ image: BUSYBOX, network: { allow: [NAME] } });
    await using server = await sandbox.spawn({ argv: ["sh", "-c", "while :; do echo own | nc -l -p 80; done"] });
    await sandbox.waitForPort(80, { timeout: 20_000 });
    // Between two connections nobody listens for a moment.
    await expect.poll(async () => (await sandbox.shell("nc 127.0.0.1 80 </dev/null")).stdout).toBe("own\n");
    expect(server.id).toBeTruthy();
  });
});

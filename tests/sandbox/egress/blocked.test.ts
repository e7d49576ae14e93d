import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Origin, startOrigin } from "../../support/egress/origin.js";
import { type RunningProxy, startProxy, statusOf, talk } from "../../support/egress/running-proxy.js";

const NAME = "allowed.test";
let origin: Origin;
let proxy: RunningProxy;
beforeAll(async () => {
  origin = await startOrigin();
  proxy = await startProxy([`${NAME}:${origin.port}`], { names: { [NAME]: "127.0.0.1" } });
});

afterAll(async () => {
  await proxy[Symbol.asyncDispose]();
  origin.close();
});

describe("[N-NET-02] [N-NET-03] [N-NET-04] hosts that are not allowed", () => {
  const hosts = [
    ...["169.254.169.254", "[fd00:ec2::254]", "100.100.100.200", "metadata.google.internal", "127.0.0.1", "localhost"],
    ...[
      "0",
      "0x7f000001",
      "2130706433",
      "0177.1",
      "127.1",
      "[::1]",
      "[::ffff:127.0.0.1]",
      "[::]",
      "172.17.0.1",
      "192.168.1.1",
    ],
    ...[
      `${NAME}.evil.test`,
      `evil-${NAME}`,
      `sub.${NAME}`,
      `evil.test\0.${NAME}`,
      `${NAME}@evil.test`,
      `evil.test@${NAME}`,
    ],
    ...[
      "\xe0llowed.test",
      "xn--llowed-cta.test",
      `evil.test\\.${NAME}`,
      `${NAME}%00.evil.test`,
      `${NAME}..`,
      `.${NAME}`,
      "8.8.8.8",
    ],
  ];

  test.each(hosts)("%j is refused, never resolved and never connected to", async (host) => {
    await using own = await startProxy([`${NAME}:${origin.port}`], { names: { [NAME]: "127.0.0.1" } });
    const authority = `${host}:${origin.port}`;
    const before = origin.requests.length;
    const tunnelAnswer = await talk(own.port, `CONNECT ${authority} HTTP/1.1\r\nHost: ${NAME}\r\n\r\n`);
    expect([400, 403]).toContain(statusOf(tunnelAnswer));
    const plainAnswer = await talk(own.port, `GET http://${authority}/ HTTP/1.1\r\nHost: ${authority}\r\n\r\n`);
    expect([400, 403]).toContain(statusOf(plainAnswer));
    expect({ lookups: own.lookups, checked: own.checked }).toEqual({ lookups: [], checked: [] });
    expect(origin.requests.length).toBe(before);
    if (!host.includes("\0")) expect(own.blocked.length).toBeGreaterThan(0);
  });

  test.each([`${NAME}.`, NAME.toUpperCase()])("%j is the allowed name in another spelling", async (host) => {
    const authority = `${host}:${origin.port}`;
    const answer = await talk(proxy.port, `GET http://${authority}/ HTTP/1.1\r\nHost: ${authority}\r\n\r\n`);
    expect(statusOf(answer)).toBe(200);
    expect(origin.requests.at(-1)?.headers.host).toBe(`${NAME}:${origin.port}`);
  });

  test("another port of an allowed host is refused", async () => {
    const answer = await talk(proxy.port, `CONNECT ${NAME}:22 HTTP/1.1\r\n\r\n`);
    expect(statusOf(answer)).toBe(403);
    expect(answer).toContain(`to allow it: network: { allow: ["${NAME}:22"] }`);
  });

  test("nothing is said of how to allow what cannot be allowed", async () => {
    const answer = await talk(proxy.port, "GET http://127.0.0.1/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    expect(answer).toMatch(/does not allow 127\.0\.0\.1:80, and it cannot be allowed\n$/);
  });

  test("another port of the host's loopback is refused with the flag that opens it", async () => {
    await using own = await startProxy([`${NAME}:${origin.port}`]);
    const answer = await talk(own.port, "CONNECT host-loopback:5433 HTTP/1.1\r\n\r\n");
    expect(statusOf(answer)).toBe(403);
    expect(answer).toContain("to allow it: --network 'allow=host-loopback:5433'");
  });

  test("an empty list refuses everything", async () => {
    await using own = await startProxy([], { names: { [NAME]: "127.0.0.1" } });
    for (const host of [NAME, "127.0.0.1", "localhost", "example.com"]) {
      expect(statusOf(await talk(own.port, `CONNECT ${host}:443 HTTP/1.1\r\n\r\n`))).toBe(403);
    }
    expect(own.lookups).toEqual([]);
  });

  test("each is reported once, a few hundred at most", async () => {
    await using own = await startProxy([]);
    for (let round = 0; round < 3; round++) await talk(own.port, "CONNECT evil.test:443 HTTP/1.1\r\n\r\n");
    expect(own.blocked).toEqual([{ host: "evil.test", port: 443, reason: "not_allowed" }]);
    for (let port = 1; port <= 600; port += 20) {
      const batch = Array.from({ length: 20 }, (_, index) =>
        talk(own.port, `CONNECT evil.test:${port + index} HTTP/1.1\r\n\r\n`),
      );
      await Promise.all(batch);
    }
    expect(own.blocked).toHaveLength(500);
  });
});

describe("[N-NET-02] [N-NET-04] names that lead to the host or its network", () => {
  const ask = (port: number): Promise<string> =>
    talk(port, `GET http://${NAME}:${origin.port}/ HTTP/1.1\r\nHost: ${NAME}:${origin.port}\r\n\r\n`);

  test.each([
    ...["127.0.0.1", "::1", "0.0.0.0", "::", "10.0.0.1", "169.254.169.254", "::ffff:127.0.0.1", "64:ff9b::7f00:1"],
    ...["fd00:ec2::254", "100.100.100.200", "192.168.1.1", "not an address", "localhost", "0x7f000001"],
  ])("%s is refused where nothing was changed for a test", async (address) => {
    await using own = await startProxy([`${NAME}:${origin.port}`], {
      names: { [NAME]: address },
      isLoopbackPublic: false,
    });
    const before = origin.requests.length;
    expect(statusOf(await ask(own.port))).toBe(403);
    expect(own.blocked).toEqual([{ host: NAME, port: origin.port, reason: "not_public" }]);
    expect(origin.requests.length).toBe(before);
  });

  test("the answer that was checked is the one that is used: a second one is never asked for", async () => {
    const answers = [["127.0.0.1"], ["10.0.0.1"]];
    const names = { [NAME]: async () => answers.shift() ?? [] };
    await using own = await startProxy([`${NAME}:${origin.port}`], { names });
    expect(statusOf(await ask(own.port))).toBe(200);
    expect(own.lookups).toHaveLength(1);
    expect(statusOf(await ask(own.port))).toBe(403);
  });

  test("of several addresses only those that are public are connected to", async () => {
    await using own = await startProxy([`${NAME}:${origin.port}`], {
      names: { [NAME]: ["10.0.0.1", "::1", "127.0.0.1"] },
    });
    expect(statusOf(await ask(own.port))).toBe(200);
    expect(own.checked).toEqual(["10.0.0.1", "::1", "127.0.0.1"]);
  });
});

import { describe, expect, test } from "vitest";
import { SandboxError } from "../../../../contracts/errors.js";
import type { NetworkRule, NetworkRules } from "../../../../contracts/types.js";
import { isPrivateAddress } from "../../../../src/sandbox/egress/addresses.js";
import { firstBeyond, parseAllow, parseRules, widened } from "../../../../src/sandbox/egress/policy.js";
import { entryText, parseEntryText } from "../../../../src/sandbox/egress/rules/entry-text.js";
import { mergeEntries, needsNetworkRules, toNames } from "../../../../src/sandbox/egress/rules/list-entries.js";

const HOST = "api.example.com";

function refusal(work: () => unknown): SandboxError {
  try {
    work();
  } catch (error) {
    if (error instanceof SandboxError) return error;
    throw error;
  }
  throw new Error("expected a refusal");
}

describe("a rule that is refused", () => {
  test.each<[string, unknown, string, string?]>([
    ["no methods", { host: HOST, methods: [] }, "network.allow[1].methods"],
    ["no paths", { host: HOST, paths: [] }, "network.allow[1].paths"],
    [
      "a method in lower case",
      { host: HOST, methods: ["get"] },
      'methods[0]: expected a method in upper case, such as "GET", got "get"',
    ],
    ["a method that is no token", { host: HOST, methods: ["GET /"] }, "methods[0]"],
    ["CONNECT", { host: HOST, methods: ["CONNECT"] }, "methods[0]"],
    [
      "a path without a slash",
      { host: HOST, paths: ["v1/**"] },
      "network.allow[1].paths[0]: expected a path that starts with a slash",
    ],
    ["a path with a query", { host: HOST, paths: ["/v1?x"] }, "paths[0]"],
    ["an encoded path", { host: HOST, paths: ["/a", "/v%31"] }, "paths[1]"],
    ["a path that climbs", { host: HOST, paths: ["/v1/../x"] }, "paths[0]"],
    ["a path that no request has", { host: HOST, paths: ["/v1/.../x"] }, "paths[0]"],
    ["a path with a wide slash", { host: HOST, paths: ["/v1\uff0fx"] }, "paths[0]"],
    ["an empty segment", { host: HOST, paths: ["/v1//x"] }, "paths[0]"],
    ["** within a segment", { host: HOST, paths: ["/v1**"] }, "paths[0]: expected ** as a whole segment"],
    [
      "an unknown field",
      { host: HOST, method: ["GET"] },
      'Unknown option "method" in network.allow[1]',
      'did you mean "methods"?',
    ],
    ["no host", { methods: ["GET"] }, "network.allow[1].host"],
    ["another word for git", { host: HOST, git: "pull" }, "git"],
    ["a port that is none", { host: HOST, port: 70_000 }, "port"],
    ["two ports", { host: `${HOST}:443`, port: 443 }, "network.allow[1].host: expected a name without a port"],
    [
      "plain and methods",
      { host: HOST, port: 22, plain: true, methods: ["GET"] },
      "together with plain",
      "can't be checked",
    ],
    ["plain and git", { host: HOST, port: 22, plain: true, git: "fetch" }, "together with plain"],
    ["plain without a port", { host: HOST, plain: true }, "expected a port"],
    ["plain twice", { host: `plain://${HOST}:22`, plain: true }, "network.allow[1].host", "plain: true says that"],
    ["git and methods", { host: HOST, git: "fetch", methods: ["GET"] }, "git or methods, not both"],
    ["a public address with private", { host: "1.1.1.1", private: true }, "expected a private address"],
    ["loopback with private", { host: "127.0.0.1", private: true }, "expected a private address", "never reached"],
    ["link-local with private", { host: "169.254.169.254", private: true }, "expected a private address"],
    ["metadata with private", { host: "100.100.100.200", private: true }, "expected a private address"],
    ["a mapped loopback with private", { host: "::ffff:127.0.0.1", private: true }, "expected a private address"],
    ["localhost with private", { host: "localhost", private: true }, "a host other than this one"],
    ["below localhost with private", { host: "*.localhost", private: true }, "a host other than this one"],
    ["a private address without private", { host: "10.0.0.1" }, "expected a public address", "private: true"],
    ["a single label without private", { host: "wiki" }, "a name with a dot", "private: true"],
    ["everything", { host: "*" }, "network.allow[1].host: expected a name", 'network: "full"'],
    ["a scheme", { host: "https://api.example.com" }, "a name without a scheme"],
    ["a list", [HOST], "network.allow[1]"],
    ["null", null, "network.allow[1]"],
  ])("%s", (_what, entry, message, hint) => {
    const error = refusal(() => parseRules({ allow: ["example.org", entry as NetworkRule] }));
    expect(error).toMatchObject({ code: "invalid_argument", message: expect.stringContaining(message) });
    if (hint !== undefined) expect(error.hint).toContain(hint);
  });

  test.each<[string, NetworkRules, string]>([
    [
      "a rule for requests of a host that is allowed in full",
      { allow: [HOST, { host: HOST, methods: ["GET"] }] },
      `network.allow[1] (GET ${HOST}): network.allow[0] (${HOST}) allows every request there`,
    ],
    [
      "a rule for requests below a wildcard that allows all",
      { allow: ["*.example.com", { host: HOST, git: "fetch" }] },
      "network.allow[1]",
    ],
    [
      "a rule for requests of a host that is plain",
      { allow: [{ host: HOST, port: 443, methods: ["GET"] }, `plain://${HOST}:443`] },
      "network.allow[0]",
    ],
    [
      "a deny that covers its allow",
      { allow: [HOST], deny: [HOST] },
      `network.allow[0] (${HOST}): network.deny[0] (${HOST}) denies all of it`,
    ],
    [
      "a wildcard of deny that covers its allow",
      { allow: ["example.org", HOST], deny: ["*.example.com"] },
      "network.allow[1]",
    ],
    [
      "a deny of all that a rule allows",
      { allow: [{ host: HOST, methods: ["POST"], paths: ["/v1/*"] }], deny: [{ host: HOST, methods: ["POST"] }] },
      "network.allow[0]",
    ],
    [
      "a deny of all fetches",
      { allow: [{ host: HOST, git: "fetch" }], deny: [{ host: HOST, git: "fetch" }] },
      "network.allow[0]",
    ],
    [
      "a deny about the requests of what is plain",
      { allow: [`plain://${HOST}:22`], deny: [{ host: HOST, methods: ["GET"] }] },
      "is about requests",
    ],
    [
      "plain in deny",
      { allow: [HOST], deny: [{ host: "a.example.com", plain: true, port: 22 }] },
      "network.deny[0]: expected no plain",
    ],
    [
      "private in deny",
      { allow: [HOST], deny: [{ host: "a.example.com", private: true }] },
      "network.deny[0]: expected no plain and no private",
    ],
  ])("%s", (_what, rules, message) => {
    expect(refusal(() => parseRules(rules))).toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining(message),
    });
  });

  test.each<[string, NetworkRules]>([
    [
      "two rules for a host",
      {
        allow: [
          { host: HOST, methods: ["GET"] },
          { host: HOST, methods: ["POST"], paths: ["/v1/*"] },
        ],
      },
    ],
    ["a deny of one path", { allow: [HOST], deny: [{ host: HOST, paths: ["/admin/**"] }] }],
    ["a deny of one name of many", { allow: ["*.example.com"], deny: [HOST] }],
    [
      "a deny of pushing where both are allowed",
      { allow: [{ host: HOST, git: "push" }], deny: [{ host: HOST, git: "push" }] },
    ],
    ["all of a host at another port", { allow: [{ host: HOST, methods: ["GET"] }, `${HOST}:8443`] }],
  ])("not %s", (_what, rules) => {
    expect(parseRules(rules).isAllowed(HOST, 443) || rules.deny?.[0] === HOST).toBe(true);
  });
});

describe("deny", () => {
  test("wins, at every port unless it names one", () => {
    const policy = parseRules({ allow: ["*.example.com", "*.example.com:8443"], deny: [HOST, "b.example.com:8443"] });
    const asked: [string, number][] = [
      [HOST, 443],
      [HOST, 8443],
      ["API.example.com.", 443],
      ["a.example.com", 443],
      ["b.example.com", 443],
      ["b.example.com", 8443],
    ];
    expect(asked.map(([host, port]) => policy.isAllowed(host, port))).toEqual([false, false, false, true, true, false]);
    expect(policy.deniedBy(HOST, 443)).toBe(`network.deny[0] (${HOST})`);
  });

  test("is about addresses, too, whatever name leads there", () => {
    const policy = parseRules({ allow: ["*.example.com"], deny: ["1.1.1.1", "[2606:4700::1]:8443"] });
    const { isDenied } = policy.reachOf("a.example.com", 443);
    expect(["1.1.1.1", "1.0.0.1", "2606:4700::1", "2606:4700:0:0::1"].map(isDenied)).toEqual([
      true,
      false,
      false,
      false,
    ]);
    expect(policy.reachOf("a.example.com", 8443).isDenied("2606:4700:0:0::1")).toBe(true);
    expect(isDenied("::ffff:1.1.1.1")).toBe(true);
  });
});

describe("private", () => {
  test.each([
    "10.0.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "100.64.0.1",
    "fd12:3456::1",
    "fc00::1",
    "::ffff:10.0.0.1",
    "64:ff9b::10.0.0.1",
  ])("%s is private", (address) => expect(isPrivateAddress(address)).toBe(true));

  test.each([
    ...[
      "127.0.0.1",
      "0.0.0.0",
      "169.254.169.254",
      "169.254.0.1",
      "fd00:a9fe:a9fe::1",
      "100.100.100.200",
      "172.32.0.1",
      "172.15.0.1",
      "192.169.0.1",
      "100.128.0.1",
      "1.1.1.1",
    ],
    ...[
      "::1",
      "::",
      "fe80::1",
      "fd00:ec2::254",
      "fd20:ce::254",
      "fd00:c1::a9fe:a9fe",
      "fd00:42::42",
      "ff02::1",
      "2606:4700::1",
      "192.0.0.192",
    ],
    ...[
      "::ffff:127.0.0.1",
      "::ffff:169.254.169.254",
      "::ffff:100.100.100.200",
      "64:ff9b::169.254.169.254",
      "64:ff9b::7f00:1",
      "64:ff9b:1::10.0.0.1",
    ],
    ...["10.1", "localhost", "", "fd00::1%eth0"],
  ])("%s is not", (address) => expect(isPrivateAddress(address)).toBe(false));

  test("is for its own entry only", () => {
    const policy = parseRules({
      allow: [{ host: "wiki", private: true }, { host: "*.corp", private: true, port: 8080 }, "example.org"],
    });
    expect(policy.reachOf("wiki", 443).scopes).toEqual(["private"]);
    expect(policy.reachOf("a.corp", 8080).scopes).toEqual(["private"]);
    expect(policy.reachOf("example.org", 443).scopes).toEqual(["public"]);
    expect(policy.isAllowed("a.corp", 443)).toBe(false);
  });
});

describe("a port of the host's loopback", () => {
  test("is known only where the user wrote it for this sandbox", () => {
    const allow = ["host-loopback:5432"];
    const policy = parseRules({ allow }, { isHostLoopbackKnown: true });
    expect([policy.isAllowed("host-loopback", 5432), policy.isAllowed("host-loopback", 5433)]).toEqual([true, false]);
    expect(policy.reachOf("host-loopback", 5432).scopes).toEqual(["loopback"]);
    expect(policy.isPlain("host-loopback", 5432)).toBe(true);
    for (const work of [
      () => parseRules({ allow }),
      () => parseAllow(allow),
      () => parseAllow(["plain://host-loopback:5432"]),
    ]) {
      expect(refusal(work)).toMatchObject({
        code: "invalid_argument",
        hint: expect.stringContaining("--network allow=host-loopback:<port>"),
      });
    }
  });

  test("is not opened by a window, and stays open in one", () => {
    expect(refusal(() => widened({ allow: [] }, ["host-loopback:5432"])).code).toBe("invalid_argument");
    expect(widened({ allow: ["host-loopback:5432"] }, ["example.org"]).isAllowed("host-loopback", 5432)).toBe(true);
  });

  test.each(["host-loopback", "HOST-LOOPBACK", { host: "host-loopback", private: true, port: 1 }])(
    "needs a port and nothing else: %j",
    (entry) => {
      expect(refusal(() => parseRules({ allow: [entry] }, { isHostLoopbackKnown: true })).code).toBe(
        "invalid_argument",
      );
    },
  );
});

describe("rules within rules", () => {
  const get: NetworkRule = { host: HOST, methods: ["GET", "POST"], paths: ["/v1/**"] };
  test.each<[string, NetworkRules, NetworkRules, boolean]>([
    ["the same", { allow: [get] }, { allow: [get] }, true],
    ["fewer methods", { allow: [{ ...get, methods: ["GET"] }] }, { allow: [get] }, true],
    ["HEAD of GET", { allow: [{ ...get, methods: ["HEAD"] }] }, { allow: [get] }, true],
    ["more methods", { allow: [{ ...get, methods: ["PUT"] }] }, { allow: [get] }, false],
    ["no methods", { allow: [{ host: HOST, paths: ["/v1/**"] }] }, { allow: [get] }, false],
    ["a narrower path", { allow: [{ ...get, paths: ["/v1/models/*"] }] }, { allow: [get] }, true],
    ["a wider path", { allow: [{ ...get, paths: ["/**"] }] }, { allow: [get] }, false],
    ["all of the host", { allow: [HOST] }, { allow: [get] }, false],
    ["requests of a host that is allowed", { allow: [get] }, { allow: ["*.example.com"] }, true],
    ["a name by an object", { allow: [{ host: HOST }] }, { allow: [HOST] }, true],
    ["fetching of pushing", { allow: [{ host: HOST, git: "fetch" }] }, { allow: [{ host: HOST, git: "push" }] }, true],
    ["pushing of fetching", { allow: [{ host: HOST, git: "push" }] }, { allow: [{ host: HOST, git: "fetch" }] }, false],
    [
      "git of methods",
      { allow: [{ host: HOST, git: "push" }] },
      { allow: [{ host: HOST, methods: ["GET", "POST"] }] },
      true,
    ],
    [
      "git of one method",
      { allow: [{ host: HOST, git: "fetch" }] },
      { allow: [{ host: HOST, methods: ["GET"] }] },
      false,
    ],
    ["methods of git", { allow: [{ host: HOST, methods: ["GET"] }] }, { allow: [{ host: HOST, git: "push" }] }, false],
    ["private of public", { allow: [{ host: HOST, private: true }] }, { allow: [HOST] }, false],
    ["public of private", { allow: [HOST] }, { allow: [{ host: HOST, private: true }] }, false],
    [
      "private of private",
      { allow: [{ host: HOST, private: true }] },
      { allow: [{ host: "*.example.com", private: true }] },
      true,
    ],
    ["plain of TLS", { allow: [`plain://${HOST}:443`] }, { allow: [HOST] }, false],
    ["a port of the host that is not in it", { allow: ["host-loopback:5432"] }, { allow: ["host-loopback:80"] }, false],
    ["a port of the host that is in it", { allow: ["host-loopback:80"] }, { allow: ["host-loopback:80"] }, true],
    ["what is denied", { allow: [HOST] }, { allow: ["*.example.com"], deny: [HOST] }, false],
    ["a wildcard over what is denied", { allow: ["*.example.com"] }, { allow: ["*.example.com"], deny: [HOST] }, false],
    [
      "the same with its deny",
      { allow: ["*.example.com"], deny: [HOST] },
      { allow: ["*.example.com"], deny: [HOST] },
      true,
    ],
    [
      "the same with a wider deny",
      { allow: ["*.example.com"], deny: [HOST] },
      { allow: ["*.example.com"], deny: [{ host: HOST, methods: ["POST"] }] },
      true,
    ],
    [
      "the same with a narrower deny",
      { allow: ["*.example.com"], deny: [{ host: HOST, methods: ["POST"] }] },
      { allow: ["*.example.com"], deny: [HOST] },
      false,
    ],
    [
      "another name than what is denied",
      { allow: ["a.example.com"] },
      { allow: ["*.example.com"], deny: [HOST] },
      true,
    ],
    [
      "a deny of fetching for one of pushing",
      { allow: [HOST], deny: [{ host: HOST, git: "fetch" }] },
      { allow: [HOST], deny: [{ host: HOST, git: "push" }] },
      false,
    ],
  ])("%s", (_what, asked, most, isWithin) => {
    expect(firstBeyond(asked, most)).toEqual(isWithin ? undefined : asked.allow[0]);
  });
});

describe("an entry in one line", () => {
  test.each<[string, string | NetworkRule]>([
    ["example.com", "example.com"],
    ["plain://example.com:22", "plain://example.com:22"],
    ["GET api.example.com/v1/**", { host: HOST, methods: ["GET"], paths: ["/v1/**"] }],
    [
      "GET+POST api.example.com:8443/v1/* /v2/*",
      { host: `${HOST}:8443`, methods: ["GET", "POST"], paths: ["/v1/*", "/v2/*"] },
    ],
    ["git-fetch github.example/org/*", { host: "github.example", git: "fetch", paths: ["/org/*"] }],
    ["git-push github.example", { host: "github.example", git: "push" }],
    ["private wiki", { host: "wiki", private: true }],
    ["private plain db.corp:5432", { host: "db.corp:5432", private: true, plain: true }],
    ["api.example.com/v1", { host: HOST, paths: ["/v1"] }],
    ["https://example.com/x", "https://example.com/x"],
    ["GET", "GET"],
  ])("%s", (text, entry) => {
    expect(parseEntryText(text)).toEqual(entry);
    if (typeof entry !== "string") expect(parseEntryText(entryText(entry))).toEqual(entry);
  });

  test("has the port of an object, too", () => {
    expect(entryText({ host: HOST, port: 8443, methods: ["GET"] })).toBe(`GET ${HOST}:8443`);
    expect(entryText({ host: "2606:4700::1", port: 8443 })).toBe("[2606:4700::1]:8443");
  });
});

test("lists are merged, each entry once, and objects that are only names are names", () => {
  const rule = { host: HOST, methods: ["GET"] };
  expect(mergeEntries(["b.example", rule], [{ ...rule }, "a.example", "b.example"])).toEqual([
    rule,
    "a.example",
    "b.example",
  ]);
  expect(toNames(["a.example", { host: "b.example", port: 22, plain: true }, { host: "c.example" }])).toEqual([
    "a.example",
    "plain://b.example:22",
    "c.example",
  ]);
  expect(needsNetworkRules({ allow: ["a.example", { host: "b.example", port: 22, plain: true }] })).toBeUndefined();
  expect(needsNetworkRules({ allow: ["a.example", rule] })).toBe(`network.allow[1] (GET ${HOST})`);
  expect(needsNetworkRules({ allow: ["Host-Loopback:5432"] })).toContain("network.allow[0]");
  expect(needsNetworkRules({ allow: ["a.example"], deny: ["b.example"] })).toBe("network.deny");
});

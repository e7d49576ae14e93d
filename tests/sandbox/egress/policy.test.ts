import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { SandboxError } from "../../../contracts/errors.js";
import { proxyEnv } from "../../../src/sandbox/egress/env.js";
import { normalizeHost } from "../../../src/sandbox/egress/host-name.js";
import { parseAllow } from "../../../src/sandbox/egress/policy.js";

const LIST = [
  "packages.example.org",
  "*.example.com",
  "git.example.net:8443",
  "bücher.example",
  "1.1.1.1",
  "[2606:4700::1111]:853",
];
const policy = parseAllow(LIST);

test.each([
  ["packages.example.org", 80],
  ["packages.example.org", 443],
  ["PACKAGES.Example.ORG", 443],
  ["packages.example.org.", 443],
  ["a.example.com", 443],
  ["a.b.c.example.com", 443],
  ["xn--a.example.com", 443],
  ["_x.example.com", 443],
  ["git.example.net", 8443],
  ["xn--bcher-kva.example", 443],
  ["1.1.1.1", 443],
  ["[2606:4700::1111]", 853],
  ["[2606:4700:0:0:0:0:0:1111]", 853],
])("%s:%i is allowed", (host, port) => {
  expect(policy.isAllowed(host, port)).toBe(true);
});

test("an entry that says plain allows its host and port, and only there something else than TLS", () => {
  const both = parseAllow([
    "plain://*.example.com:22",
    "a.example.com",
    "b.example.com:22",
    "plain://[2606:4700::1]:22",
  ]);
  const answers = (host: string, port: number): boolean[] => [both.isAllowed(host, port), both.isPlain(host, port)];
  expect(answers("a.example.com", 22)).toEqual([true, true]);
  expect(answers("A.example.com.", 22)).toEqual([true, true]);
  expect(answers("b.example.com", 22)).toEqual([true, true]);
  expect(answers("a.example.com", 443)).toEqual([true, false]);
  expect(answers("b.example.com", 443)).toEqual([false, false]);
  expect(answers("example.com", 22)).toEqual([false, false]);
  expect(answers("2606:4700::1", 22)).toEqual([true, true]);
  expect(answers("", 22)).toEqual([false, false]);
});

describe("what the list does not name is not allowed", () => {
  test.each([
    ["other port", "packages.example.org", 22],
    ["port zero", "packages.example.org", 0],
    ["port of another entry", "packages.example.org", 8443],
    ["default port beside a named one", "git.example.net", 443],
    ["apex of a wildcard", "example.com", 443],
    ["apex with a dot before it", ".example.com", 443],
    ["parent", "example.org", 443],
    ["below an exact name", "x.packages.example.org", 443],
    ["name as the head of another", "packages.example.org.evil.test", 443],
    ["wildcard's name as the head of another", "a.example.com.evil.test", 443],
    ["name as the tail of another label", "evil-packages.example.org", 443],
    ["wildcard's name as the tail of another label", "evilexample.com", 443],
    ["NUL before the name", "evil.test\0.example.com", 443],
    ["NUL after the name", "packages.example.org\0", 443],
    ["user", "packages.example.org@evil.test", 443],
    ["user before the name", "evil.test@packages.example.org", 443],
    ["space", "evil.test .example.com", 443],
    ["line end", "packages.example.org\n", 443],
    ["backslash", "evil.test\\.example.com", 443],
    ["slash", "evil.test/.example.com", 443],
    ["fragment", "evil.test#.example.com", 443],
    ["percent", "packages%2eexample.org", 443],
    ["port within", "packages.example.org:443", 443],
    ["two final dots", "packages.example.org..", 443],
    ["empty label", "a..example.com", 443],
    ["star", "*.example.com", 443],
    ["empty", "", 443],
    ["dot", ".", 443],
    ["letters that look the same", "p\u0430ckages.example.org", 443],
    ["full-width letters", "ｐackages.example.org", 443],
    ["other dots", "packages。example。org", 443],
    ["unicode form", "bücher.example", 443],
    ["soft hyphen", "pack\u00adages.example.org", 443],
    ["label too long", `${"a".repeat(64)}.example.com`, 443],
    ["name too long", `${"a.".repeat(130)}example.com`, 443],
    ["dash first", "-a.example.com", 443],
    ["mapped form of an address", "[::ffff:1.1.1.1]", 443],
    ["short form of an address", "1.1.257", 443],
    ["number form of an address", "16843009", 443],
    ["octal form of an address", "01.01.01.01", 443],
    ["hex form of an address", "0x01010101", 443],
    ["other address", "1.0.0.1", 443],
    ["loopback", "127.0.0.1", 80],
    ["localhost", "localhost", 80],
    ["zero", "0", 80],
    ["metadata", "metadata.google.internal", 80],
  ])("%s", (_what, host, port) => {
    expect(policy.isAllowed(host, port)).toBe(false);
  });

  test("an empty list", () => {
    const none = parseAllow([]);
    const hosts = ["example.com", "1.1.1.1", "localhost", "", "*", "[::1]"];
    expect(hosts.filter((host) => none.isAllowed(host, 443) || none.isAllowed(host, 80))).toEqual([]);
  });
});

describe("entries that are refused", () => {
  test.each([
    ["empty", "", undefined],
    ["everything", "*", 'network: "full"'],
    ["everything at a port", "*:443", 'network: "full"'],
    ["a top level", "*.com", '"*.example.com" would do'],
    ["a top level with a final dot", "*.com.", '"*.example.com" would do'],
    ["a star within", "a.*.com", undefined],
    ["a star in a label", "a*.example.com", undefined],
    ["two stars", "*.*.example.com", undefined],
    ["a star at the end", "example.*", undefined],
    ["a scheme", "https://example.com", 'write "example.com"'],
    ["a scheme and nothing", "https://", undefined],
    ["another scheme, in capitals", "PLAIN://example.com:22", 'write "example.com:22"'],
    ["plain without a port", "plain://example.com", undefined],
    ["plain without a host", "plain://", undefined],
    ["plain twice", "plain://plain://example.com:22", 'write "example.com:22"'],
    ["plain and a path", "plain://example.com:22/x", "whole hosts"],
    ["plain and everything", "plain://*:22", 'network: "full"'],
    ["plain and a private address", "plain://10.0.0.1:22", "never reached"],
    ["a path", "example.com/path", "whole hosts"],
    ["a query", "example.com?x", "whole hosts"],
    ["a single label", "localhost", "local network"],
    ["an empty label", "a..b", undefined],
    ["a dot first", ".example.com", undefined],
    ["a user", "user@example.com", undefined],
    ["a space", "example.com ", undefined],
    ["a NUL", "example.com\0", undefined],
    ["a backslash", "example.com\\", undefined],
    ["a percent sign", "ex%61mple.com", undefined],
    ["a percent sign beside other letters", "ex%61mplé.com", undefined],
    ["port zero", "example.com:0", undefined],
    ["a port beyond the last", "example.com:65536", undefined],
    ["a port with a zero first", "example.com:0443", undefined],
    ["an empty port", "example.com:", undefined],
    ["a port that is none", "example.com:https", undefined],
    ["two ports", "example.com:80:443", undefined],
    ["a private address", "10.0.0.1", "never reached"],
    ["loopback", "127.0.0.1", "never reached"],
    ["loopback, v6", "[::1]:80", "never reached"],
    ["loopback, v6 without brackets", "::1", "never reached"],
    ["metadata", "169.254.169.254", "never reached"],
    ["a disguised address", "0x7f.1", undefined],
    ["a number", "2130706433", undefined],
    ["a wildcard of an address", "*.1.1.1.1", undefined],
    ["a block of addresses", "1.1.1.0/24", "whole hosts"],
    ["an emoji beside a space", "☃ .com", undefined],
    ["no text", 5, undefined],
    ["nothing", undefined, undefined],
  ])("%s", (_what, entry, hint) => {
    const error = refusal(() => parseAllow(["example.com", entry as string]));
    expect(error.code).toBe("invalid_argument");
    expect(error.message).toContain("network.allow[1]");
    expect(error.message).toContain(JSON.stringify(entry) ?? "undefined");
    if (hint === undefined) expect(error.hint).toBeUndefined();
    else expect(error.hint).toContain(hint);
  });
});

const label = fc.stringMatching(/^[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?$/);
const name = fc
  .tuple(fc.array(label, { minLength: 1, maxLength: 3 }), fc.stringMatching(/^[a-z]{2,6}$/))
  .map(([labels, top]) => [...labels, top].join("."));

test("a wildcard allows what has more labels before it, and nothing else", () => {
  fc.assert(
    fc.property(name, name, (base, other) => {
      const below = parseAllow([`*.${base}`]);
      expect(below.isAllowed(`${other}.${base}`, 443)).toBe(true);
      expect(below.isAllowed(base, 443)).toBe(false);
      expect(below.isAllowed(`${other}${base}`, 443)).toBe(`${other}${base}`.endsWith(`.${base}`));
      expect(below.isAllowed(`x.${base}.${other}`, 443)).toBe(`.${other}`.endsWith(`.${base}`));
    }),
  );
});

test("a name allows itself in every spelling, and nothing else", () => {
  const anything = fc.oneof(fc.string(), fc.string({ unit: "binary" }), name, fc.domain());
  fc.assert(
    fc.property(name, anything, (own, other) => {
      const only = parseAllow([own]);
      expect(only.isAllowed(own.toUpperCase(), 443) && only.isAllowed(`${own}.`, 80)).toBe(true);
      expect(only.isAllowed(other, 443)).toBe(other.toLowerCase().replace(/\.$/, "") === own);
      expect(only.isAllowed(`${other}.${own}`, 443)).toBe(false);
    }),
  );
});

test("what is normal stays as it is", () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.string({ unit: "binary" }),
        fc.domain(),
        fc.ipV4(),
        fc.ipV6().map((a) => `[${a}]`),
      ),
      (text) => {
        const host = normalizeHost(text);
        if (host === undefined) return;
        expect(normalizeHost(host.includes(":") ? `[${host}]` : host)).toBe(host);
        expect(host).toMatch(/^[a-z0-9._:-]+$/);
      },
    ),
  );
});

test("the variables name the proxy for http and https, and loopback as an exception", () => {
  const env = proxyEnv(3128);
  for (const name of ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"])
    expect(env[name]).toBe("http://127.0.0.1:3128");
  for (const name of ["NO_PROXY", "no_proxy"]) expect(env[name]).toBe("localhost,127.0.0.1,::1");
  expect(env["NODE_USE_ENV_PROXY"]).toBe("1");
  expect(env["JAVA_TOOL_OPTIONS"]).toContain("-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=3128");
  expect(Object.keys(env)).not.toContain("ALL_PROXY");
});

function refusal(work: () => unknown): SandboxError {
  try {
    work();
  } catch (error) {
    if (error instanceof SandboxError) return error;
    throw error;
  }
  throw new Error("expected a refusal");
}

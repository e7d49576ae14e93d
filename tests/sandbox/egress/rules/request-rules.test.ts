import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { NetworkRule, NetworkRules } from "../../../../contracts/types.js";
import { parseRules, type RequestFacts } from "../../../../src/sandbox/egress/policy.js";
import { Refusal } from "../../../../src/sandbox/egress/refusal.js";
import {
  coversPath,
  matchesPath,
  type PathPattern,
  parsePathPattern,
} from "../../../../src/sandbox/egress/rules/path-pattern.js";
import { readPath } from "../../../../src/sandbox/egress/rules/request-path.js";

const HOST = "api.example.com";

/** The refusal of a request; undefined if it may pass. */
function refusalOf(rules: NetworkRules, request: RequestFacts, port = 443): Refusal | undefined {
  try {
    parseRules(rules).checkRequest(HOST, port, request);
    return undefined;
  } catch (error) {
    if (error instanceof Refusal) return error;
    throw error;
  }
}

function isPassed(rule: Omit<NetworkRule, "host">, method: string, path: string): boolean {
  return refusalOf({ allow: [{ host: HOST, ...rule }] }, { method, path }) === undefined;
}

function pattern(text: string): PathPattern {
  const parsed = parsePathPattern(text);
  if ("expected" in parsed) throw new Error(`${text}: expected ${parsed.expected}`);
  return parsed;
}

describe("methods", () => {
  test.each([
    ["GET", true],
    ["HEAD", true],
    ["POST", false],
    ["get", false],
    ["Get", false],
    ["GETX", false],
    ["OPTIONS", false],
    ["PATCH", true],
  ])("of GET and PATCH, %s passes: %s", (method, passes) => {
    expect(isPassed({ methods: ["GET", "PATCH"] }, method, "/")).toBe(passes);
  });

  test("HEAD alone does not allow GET", () => {
    expect([isPassed({ methods: ["HEAD"] }, "HEAD", "/"), isPassed({ methods: ["HEAD"] }, "GET", "/")]).toEqual([
      true,
      false,
    ]);
  });

  test("a server that ignores case does not get a denied one", () => {
    const rules = { allow: [HOST], deny: [{ host: HOST, methods: ["DELETE"] }] };
    expect(
      ["DELETE", "delete", "dElete", "POST"].map((method) => refusalOf(rules, { method, path: "/" }) === undefined),
    ).toEqual([false, false, false, true]);
  });

  test.each([
    ...["X-HTTP-Method-Override", "x-http-method", "X-Method-Override", "X-Original-URL", "x-rewrite-url"],
    // Old servers make the same variable of them.
    ...["X_HTTP_Method_Override", "X.HTTP.Method~Override"],
  ])("the header %s can't make another request of it", (name) => {
    const rules = { allow: [{ host: HOST, methods: ["GET"] }] };
    const refusal = refusalOf(rules, {
      method: "GET",
      path: "/",
      headers: [
        ["Accept", "*/*"],
        [name, "DELETE"],
      ],
    });
    expect(refusal?.message).toContain(name);
  });

  test.each([
    "/x?_method=DELETE",
    "/x?a=1&_METHOD=delete",
    "/x?%5fmethod=delete",
    "/x?_%6Dethod=DELETE",
    "/x?%5F%6d%65%74%68%6f%64%3DDELETE&_method%5B%5D=1",
    "/x?a=1;_method=DELETE",
    "/x?+_method=DELETE",
    "/x?.method=DELETE",
    "/x?_method[]=DELETE",
  ])("nor can a parameter: %s", (path) => {
    expect(isPassed({ methods: ["POST"] }, "POST", path)).toBe(false);
  });

  test.each(["/x?my_method=a", "/x?method=a", "/x?_methods=a", "/x?a=%26_method", "/x/_method?a=100%"])(
    "a parameter that is none of these passes: %s",
    (path) => {
      expect(isPassed({ methods: ["POST"] }, "POST", path)).toBe(true);
    },
  );
});

describe("paths", () => {
  test.each([
    ["/v1/*", "/v1/models", true],
    ["/v1/*", "/v1/", true],
    ["/v1/*", "/v1", false],
    ["/v1/*", "/v1/models/x", false],
    ["/v1/**", "/v1", true],
    ["/v1/**", "/v1/a/b/c", true],
    ["/v1/**", "/v10/a", false],
    ["/**", "/", true],
    ["/", "/", true],
    ["/", "/x", false],
    ["/a/**/z", "/a/z", true],
    ["/a/**/z", "/a/b/c/z", true],
    ["/a/**/z", "/a/b/c/z/y", false],
    ["/pkg-*.tgz", "/pkg-1.0.tgz", true],
    ["/pkg-*.tgz", "/pkg-1.0.tar", false],
    ["/v1/a b", "/v1/a%20b", true],
    ["/v1/bücher", "/v1/b%C3%BCcher", true],
    ["/v1/models", "/v1/%6Dodels", true],
    ["/v1/models", "/v1/Models", false],
    ["/v1/models", "/v1/models?x=/../../admin", true],
    ["/v1/models", "/v1/models/", false],
    ["/v1/a+b", "/v1/a+b", true],
  ])("%s and %s: %s", (paths, path, passes) => {
    expect(isPassed({ paths: [paths] }, "GET", path)).toBe(passes);
  });

  test.each([
    "/v1/../admin",
    "/v1/./x",
    "/v1/..",
    "/v1//x",
    "//v1/x",
    "/v1/%2e%2e/admin",
    "/v1/.%2E/admin",
    "/v1/..%2fadmin",
    "/v1/x%2Fy",
    "/v1/x%5cy",
    "/v1/x\\..\\admin",
    "/v1/x;/../admin",
    "/v1/..;/admin",
    "/v1/x%3Bv=1",
    "/v1/%252e%252e/admin",
    "/v1/x%00",
    "/v1/x%0d%0aHost:%20evil",
    "/v1/x%",
    "/v1/x%zz",
    "/v1/%c0%ae%c0%ae/admin",
    "/v1/%ff",
    "/v1/\u00ff",
    "/v1/x%3fy",
    "/v1/x%23y",
    "/v1/..%20/admin",
    "/v1/.../admin",
    "/v1/%20/x",
    "/v1/..%C2%A0/admin",
    "/v1/%EF%BC%8E%EF%BC%8E/admin",
    "/v1/%E2%80%A5/admin",
    "/v1/..%EF%BC%8Fadmin",
    "/v1/x%EF%BC%BCy",
    "*",
    "",
    "http://other.example/v1/x",
  ])("an unclear path is refused, though a rule would allow all: %s", (path) => {
    const refusal = refusalOf({ allow: [{ host: HOST, paths: ["/**"] }] }, { method: "GET", path });
    expect(refusal).toMatchObject({ status: 403, blocked: { host: HOST, port: 443, reason: "request_unclear" } });
    expect(refusalOf({ allow: [{ host: HOST, methods: ["GET"] }] }, { method: "GET", path })).toBeUndefined();
  });

  test.each([
    "/admin",
    "/ADMIN",
    "/admin/",
    "/Admin/x",
    "/admin.",
    "/admin%20/x",
    "/%61dmin",
    "/ａdmin".replace("ａ", "%EF%BD%81"),
    "/%EF%BC%A1dmin",
  ])("a denied path has no other spelling: %s", (path) => {
    const rules = { allow: [HOST], deny: [{ host: HOST, paths: ["/admin/**"] }] };
    expect(refusalOf(rules, { method: "GET", path })?.message).toContain("network.deny[0] (api.example.com/admin/**)");
    expect(refusalOf(rules, { method: "GET", path: "/administrators" })).toBeUndefined();
  });

  const letters = fc.constantFrom("a", "b", "*");
  const segment = fc.oneof(
    fc.constant("**"),
    fc.array(letters, { maxLength: 3 }).map((all) => all.join("").replace(/\*+/g, "*")),
  );
  const patterns = fc.array(segment, { minLength: 1, maxLength: 4 });
  const names = fc.array(fc.stringMatching(/^[ab]{0,3}$/), { minLength: 1, maxLength: 5 });

  /** The obvious meaning, by trying everything. */
  function model([first, ...rest]: readonly string[], path: readonly string[]): boolean {
    if (first === undefined) return path.length === 0;
    if (first === "**") return path.some((_, at) => model(rest, path.slice(at))) || model(rest, []);
    const [head, ...tail] = path;
    return head !== undefined && new RegExp(`^${first.replaceAll("*", ".*")}$`).test(head) && model(rest, tail);
  }

  test("match as a simple model does", () => {
    fc.assert(
      fc.property(patterns, names, (segments, path) => {
        expect(matchesPath({ text: "", segments }, path)).toBe(model(segments, path));
      }),
      { numRuns: 2_000 },
    );
  });

  test("a pattern that covers another matches all that the other matches", () => {
    let covering = 0;
    fc.assert(
      fc.property(patterns, patterns, names, (bound, asked, path) => {
        if (!coversPath({ text: "", segments: bound }, { text: "", segments: asked })) return;
        covering++;
        if (matchesPath({ text: "", segments: asked }, path))
          expect(matchesPath({ text: "", segments: bound }, path)).toBe(true);
      }),
      { numRuns: 5_000 },
    );
    expect(covering).toBeGreaterThan(100);
  });

  test("a long hostile path is matched at once", () => {
    const started = performance.now();
    expect(matchesPath(pattern(`/${"*a".repeat(20)}b`), ["a".repeat(20_000)])).toBe(false);
    expect(matchesPath(pattern(`/${"**/a/".repeat(20)}b`), Array<string>(8_000).fill("a"))).toBe(false);
    expect(performance.now() - started).toBeLessThan(2_000);
  });

  test("what is read has one reading: decoded once more, it is the same", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), (text) => {
        const read = readPath(`/${encodeURI(text)}`);
        if (read === undefined) return;
        for (const each of read.segments) {
          expect(decodeURIComponent(each)).toBe(each);
          expect(each).not.toMatch(/^\.\.?$|[/\\;?#%]/);
        }
      }),
    );
  });
});

describe("git", () => {
  const requests: [string, string][] = [
    ["GET", "/org/repo.git/info/refs?service=git-upload-pack"],
    ["POST", "/org/repo.git/git-upload-pack"],
    ["GET", "/org/repo.git/info/refs?service=git-receive-pack"],
    ["POST", "/org/repo.git/git-receive-pack"],
    ["GET", "/org/repo.git/info/refs"],
    ["GET", "/org/repo.git/HEAD"],
    ["POST", "/org/repo.git/info/refs?service=git-upload-pack"],
    ["GET", "/org/repo.git/git-upload-pack"],
    ["GET", "/org/repo.git/info/refs?service=git-upload-pack&service=git-receive-pack"],
    ["GET", "/org/repo.git/info/refs?x=1&service=git-upload-pack"],
    ["POST", "/org/repo.git/git-upload-pack?service=git-receive-pack"],
    ["POST", "/org/repo.git/info/lfs/objects/batch"],
    ["GET", "/org/repo.git/..%2finfo/refs?service=git-upload-pack"],
  ];
  const passed = (rule: Omit<NetworkRule, "host">): number[] =>
    requests.flatMap(([method, path], at) => (isPassed(rule, method, path) ? [at] : []));

  test("fetch allows what a client sends to fetch, and nothing else", () => {
    expect(passed({ git: "fetch" })).toEqual([0, 1]);
  });

  test("push allows that, and what it sends to push", () => {
    expect(passed({ git: "push" })).toEqual([0, 1, 2, 3]);
  });

  test("paths are those of repositories", () => {
    expect(passed({ git: "push", paths: ["/org/*"] })).toEqual([0, 1, 2, 3]);
    expect(passed({ git: "push", paths: ["/org/repo.git"] })).toEqual([0, 1, 2, 3]);
    expect(passed({ git: "push", paths: ["/other/**"] })).toEqual([]);
  });

  test.each(["constructor", "toString", "hasOwnProperty", "__proto__"])(
    "a name that every object of JavaScript knows is no service: %s",
    (name) => {
      for (const method of ["GET", "POST"]) {
        expect(isPassed({ git: "push" }, method, `/org/repo.git/${name}`)).toBe(false);
        expect(isPassed({ git: "push" }, method, `/org/repo.git/info/refs?service=${name}`)).toBe(false);
      }
    },
  );

  test("to deny pushing leaves fetching", () => {
    const rules = { allow: [HOST], deny: [{ host: HOST, git: "push" as const }] };
    const left = requests.flatMap(([method, path], at) =>
      refusalOf(rules, { method, path }) === undefined ? [at] : [],
    );
    // The last one is not clear.
    expect(left).toEqual([0, 1, 4, 5, 6, 7, 9, 10, 11]);
  });
});

describe("a refusal", () => {
  const rules = {
    allow: [
      { host: HOST, methods: ["GET"], paths: ["/v1/**"] },
      { host: HOST, git: "fetch" as const },
    ],
  };

  test("names the rules and the flag to type", () => {
    expect(refusalOf(rules, { method: "POST", path: "/v1/messages?key=secret" })?.message).toBe(
      "the rules for api.example.com do not allow POST /v1/messages?…\n" +
        "they allow: GET api.example.com/v1/**, git-fetch api.example.com\n" +
        "to allow it: --network 'allow=POST api.example.com/v1/messages'",
    );
  });

  test("names git where a git client asked", () => {
    const path = "/org/repo.git/info/refs?service=git-receive-pack";
    expect(refusalOf(rules, { method: "GET", path })?.message).toContain(
      "'allow=git-push api.example.com/org/repo.git'",
    );
  });

  test("repeats nothing that a shell would run", () => {
    const path = "/v1/'$(touch$IFS-x)'";
    const message = refusalOf(rules, { method: "PUT", path })?.message ?? "";
    expect(message.split("to allow it: ")[1]).toBe("--network 'allow=PUT api.example.com/**'");
  });

  test.each(["A'`TOUCH`'", "A+B", "delete"])(
    "says nothing to type for a method that a flag can't have: %s",
    (method) => {
      const message = refusalOf(rules, { method, path: "/v1/models" })?.message ?? "";
      expect(message).toContain("the rules for api.example.com do not allow ");
      expect(message).not.toContain("to allow it");
    },
  );
});

test("a host with rules has its TLS ended at their ports, and no other", () => {
  const policy = parseRules({
    allow: [
      "plain.example.com",
      { host: HOST, methods: ["GET"] },
      { host: "*.example.org", git: "fetch", port: 8443 },
      "plain://api.example.com:22",
    ],
    deny: [{ host: "*.example.com", port: 443, paths: ["/admin/**"] }],
  });
  expect(policy.inspected).toEqual([HOST, "*.example.org", "plain.example.com"]);
  const asked: [string, number][] = [
    [HOST, 443],
    [HOST, 80],
    [HOST, 22],
    ["a.example.org", 8443],
    ["a.example.org", 443],
    ["plain.example.com", 443],
    ["plain.example.com", 80],
  ];
  expect(asked.map(([host, port]) => policy.isInspected(host, port))).toEqual([
    true,
    true,
    false,
    true,
    false,
    true,
    false,
  ]);
  expect(asked.map(([host, port]) => policy.isAllowed(host, port))).toEqual([
    true,
    true,
    true,
    true,
    false,
    true,
    true,
  ]);
});

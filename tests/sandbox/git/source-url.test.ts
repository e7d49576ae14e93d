import { describe, expect, test } from "vitest";
import { parseSourceUrl } from "../../../src/sandbox/git/source/source-url.js";

describe("what repo may be", () => {
  test.each([
    ["https://example.com/a/b.git", "https://example.com/a/b.git", "https"],
    ["http://127.0.0.1:8080/a", "http://127.0.0.1:8080/a", "http"],
    ["acme/widgets", "https://github.com/acme/widgets.git", "https"],
    ["ssh://git@example.com:2222/a/b.git", "ssh://git@example.com:2222/a/b.git", "ssh"],
    ["git@github.com:acme/widgets.git", "git@github.com:acme/widgets.git", "ssh"],
    ["file:///srv/git/../a.git", "file:///srv/a.git", "file"],
  ])("%s", (text, url, protocol) => {
    expect(parseSourceUrl(text)).toMatchObject({ url, protocol });
  });

  test("GitHub by ssh is asked by https when there is a token; a path stays a path", () => {
    expect(parseSourceUrl("git@github.com:acme/widgets.git", { hasToken: true })?.url).toBe(
      "https://github.com/acme/widgets.git",
    );
    for (const path of [".", "./a", "../a", "/a/b", "a", "~/a", "src/sandbox", "a/b/c"]) {
      expect(parseSourceUrl(path)).toBeUndefined();
    }
  });

  test.each([
    ["http://example.com/a.git", "TLS"],
    ["https://user:hunter22@example.com/a.git", "password"],
    ["https://example.com/a.git?x=y", "query"],
    ["ssh://-oProxyCommand=touch/a", "address"],
    ["ssh://user:hunter22@example.com/a", "password"],
    ["-x@example.com:a", "address"],
    ["git@-oProxyCommand=x:a", "address"],
    ["git@example.com:-x", "address"],
    ["git://example.com/a", "only https"],
    ["ftp://example.com/a", "only https"],
    ["file://elsewhere/a", "this machine"],
  ])("not %s", (text, why) => {
    expect(() => parseSourceUrl(text)).toThrow(
      expect.objectContaining({ code: "invalid_argument", message: expect.stringContaining(why) }),
    );
    expect(() => parseSourceUrl(text)).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining("hunter22") }),
    );
  });
});

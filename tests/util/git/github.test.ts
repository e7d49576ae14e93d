import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseGitHubRepo } from "../../../src/util/git/github.js";

describe("parseGitHubRepo", () => {
  test("[S4-TEST-repo-shorthand] org/repo shorthand", () => {
    expect(parseGitHubRepo("acme/widgets")).toEqual({ owner: "acme", name: "widgets" });
  });

  test("[S4-TEST-repo-https] full HTTPS URL", () => {
    expect(parseGitHubRepo("https://github.com/acme/widgets")).toEqual({ owner: "acme", name: "widgets" });
  });

  test("[S4-TEST-repo-https-git-suffix] full HTTPS URL with .git suffix", () => {
    expect(parseGitHubRepo("https://github.com/acme/widgets.git")).toEqual({ owner: "acme", name: "widgets" });
  });

  test("[S4-TEST-repo-other-host] rejects non-GitHub host", () => {
    expect(() => parseGitHubRepo("https://gitlab.com/acme/widgets")).toThrow();
  });

  test("[S4-TEST-repo-bare-name] rejects bare name (no slash)", () => {
    expect(() => parseGitHubRepo("widgets")).toThrow();
  });

  test("[S4-TEST-repo-local-path] rejects local path", () => {
    expect(() => parseGitHubRepo("./my-project")).toThrow();
    expect(() => parseGitHubRepo("/Users/x/repo")).toThrow();
  });

  test.each([
    ["acme/.github", "acme", ".github"],
    ["acme/node.js", "acme", "node.js"],
    ["octo_acme/a_b-c", "octo_acme", "a_b-c"],
    ["https://GitHub.com/acme/widgets/", "acme", "widgets"],
  ])("accepts %s", (repo, owner, name) => {
    expect(parseGitHubRepo(repo)).toEqual({ owner, name });
  });

  test.each([
    "",
    "/",
    "acme/",
    "/widgets",
    "acme/..",
    "acme/.",
    "../widgets",
    "~/widgets",
    "C:/widgets",
    "acme/widgets/issues",
    "acme//widgets",
    "acme/wid gets",
    "acme/widgets\n",
    "acme/widgets?x=1",
    "acme/widgets#main",
    "acme/%2e%2e",
    "acme/.git",
    "acme/-u",
    "--upload-pack=x/y",
    "acme\\widgets/x",
    "http://github.com/acme/widgets",
    "git@github.com:acme/widgets.git",
    "https://github.com:8443/acme/widgets",
    "https://github.com.evil.test/acme/widgets",
    "https://evil.test/github.com/acme/widgets",
    "https://evil.test#github.com/acme/widgets",
    "https://github.com/acme/widgets/tree/main",
    "https://github.com/acme/widgets?ref=main",
    "https://github.com/acme/../widgets",
    "https://github.com/acme",
  ])("rejects %j and names it", (repo) => {
    expect(() => parseGitHubRepo(repo)).toThrow(JSON.stringify(repo));
  });

  test.each(["https://me:hunter22@github.com/acme/widgets", "ssh://git:x@hunter22@github.com/acme/widgets"])(
    "rejects the userinfo of %j without repeating it",
    (repo) => {
      const quoted = `"${repo.replace(/\/\/.*@/, "//***@")}"`;
      expect(() => parseGitHubRepo(repo)).toThrow(`not a GitHub repository: ${quoted}`);
    },
  );

  test("rejects what is no string", () => {
    expect(() => parseGitHubRepo(undefined as unknown as string)).toThrow(/string/);
  });

  test("whatever goes in, what comes out is safe as two path segments", () => {
    const piece = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.constantFrom("acme", "..", ".", "a.git", "-x", "https://github.com"),
    );
    fc.assert(
      fc.property(fc.array(piece, { minLength: 1, maxLength: 4 }), (pieces) => {
        let parsed: { owner: string; name: string };
        try {
          parsed = parseGitHubRepo(pieces.join("/"));
        } catch {
          return;
        }
        expect(parsed.owner).toMatch(/^[A-Za-z0-9][\w-]*$/);
        expect(parsed.name).toMatch(/^(?!\.{1,2}$)[\w.][\w.-]*$/);
        expect(parseGitHubRepo(`${parsed.owner}/${parsed.name}`)).toEqual(parsed);
      }),
      { numRuns: 2000 },
    );
  });
});

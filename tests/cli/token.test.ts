import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { tokenFor } from "../../src/cli/token.js";
import { credentialFindings, GITHUB } from "../../src/cli/verbs/doctor/credentials.js";
import { type Bench, createBench } from "../support/cli.js";
import { createRepository } from "../support/scratch.js";

const NAMES = ["GLOVEBOX_TOKEN", "GITHUB_TOKEN", "GH_TOKEN"] as const;

describe("the token of a command line", () => {
  test("is the first of three variables, and doctor names that one", () => {
    const env: Record<string, string> = {};
    for (const name of [...NAMES].reverse()) {
      env[name] = `value-of-${name}`;
      expect(tokenFor("acme/widgets", env)).toEqual({ githubToken: `value-of-${name}` });
      expect(credentialFindings(GITHUB, env)[0]?.detail).toBe(`${name} is set`);
    }
    expect(tokenFor("acme/widgets", { GLOVEBOX_TOKEN: "" })).toEqual({});
  });

  test("of GitHub goes to GitHub only; the one of Glovebox goes where you say", () => {
    const elsewhere = "https://git.example.org/acme/widgets";
    expect(tokenFor(elsewhere, { GITHUB_TOKEN: "t" })).toEqual({});
    expect(tokenFor(elsewhere, { GH_TOKEN: "t" })).toEqual({});
    expect(tokenFor(elsewhere, { GLOVEBOX_TOKEN: "t" })).toEqual({ githubToken: "t" });
    expect(tokenFor("https://github.com/acme/widgets", { GH_TOKEN: "t" })).toEqual({ githubToken: "t" });
    const own = { GH_TOKEN: "t", GITHUB_SERVER_URL: "https://git.example.org" };
    expect(tokenFor(elsewhere, own)).toEqual({ githubToken: "t" });
    expect(tokenFor("git@github.com:acme/widgets.git", own)).toEqual({});
  });
});

describe("glovebox run", () => {
  let bench: Bench;
  beforeAll(() => {
    bench = createBench();
    mkdirSync(join(bench.path, "work"));
    createRepository(join(bench.path, "work", "repo"));
  });
  afterAll(() => bench.remove());

  test.each(NAMES)("pushes with %s, as doctor says", async (name) => {
    const args = ["run", "hello", "--repo", "work/repo", "-m", "x", "--push", "--dry-run", "--json"];
    const warnings = async (env: Record<string, string>): Promise<string[]> =>
      (JSON.parse((await bench.run(args, { env })).stdout) as { warnings: string[] }).warnings;
    expect(await warnings({})).toContainEqual(expect.stringContaining("no token for GitHub"));
    expect(await warnings({ [name]: "a-token-of-some-length" })).not.toContainEqual(
      expect.stringContaining("no token for GitHub"),
    );
  });
});

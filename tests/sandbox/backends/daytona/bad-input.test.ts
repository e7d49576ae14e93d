import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readAccount, readSource } from "../../../../src/sandbox/backends/daytona/options.js";
import { createDaytonaSandbox } from "../../../../src/sandbox/backends/daytona.js";
import type { SandboxOptions } from "../../../../src/sandbox/types.js";
import { type DaytonaService, startDaytonaService } from "../../../support/daytona/service.js";
import { expectRefused } from "../../../support/refused.js";

let there: DaytonaService;
beforeAll(async () => {
  there = await startDaytonaService();
});
afterAll(async () => {
  // Nothing on this page may have reached the service.
  expect(there.service.requests).toEqual([]);
  await there.close();
});

test("[S4-AC-11] a missing key is told in the agreed words", async () => {
  const message = "Daytona API key required (set DAYTONA_API_KEY or pass opts.daytona.apiKey)";
  await expect(createDaytonaSandbox({ repo: "acme/widgets" })).rejects.toMatchObject({
    code: "unauthenticated",
    message,
  });
});

test.each([".", "./my-project", "/Users/x/repo", "~/repo", "../up", "widgets", "C:\\work\\x", "file:///tmp/x"])(
  "[S4-AC-19] the local path %s is refused in the agreed words",
  async (repo) => {
    const words = "Daytona sandbox requires a GitHub repo URL (e.g. org/repo), not a local path";
    await expectRefused(there.open({ repo, branch: "b" }), "invalid_argument", words);
  },
);

test.each([
  ["a repository of another host", { repo: "https://gitlab.com/acme/widgets" }, "not a GitHub repository"],
  ["a repository with dots", { repo: "acme/.." }, "not a GitHub repository"],
  ["a repository that climbs", { repo: "acme/../../etc" }, "not a GitHub repository"],
  ["a key with a line end", { daytona: { apiKey: "dtn_secret\n" } }, "daytona.apiKey"],
  ["an address without encryption", { daytona: { apiUrl: "http://example.com/api" } }, "daytona.apiUrl"],
  ["an address with credentials", { daytona: { apiUrl: "https://user:pw@example.com" } }, "daytona.apiUrl"],
  ["an address that is none", { daytona: { apiUrl: "app.daytona.io" } }, "daytona.apiUrl"],
  ["half a core", { daytona: { resources: { cpu: 0.5 } } }, "daytona.resources.cpu"],
  ["an unknown resource", { daytona: { resources: { gpus: 1 } } }, "gpus"],
  ["a misspelt option", { daytona: { snapshots: "x" } }, "snapshots"],
  ["no minutes at all", { daytona: { autoStopMinutes: 0 } }, "daytona.autoStopMinutes"],
  ["a client that is none", { daytona: { client: {} } }, "daytona.client"],
  ["two values for one end", { ttl: 60_000, daytona: { ttlMinutes: 5 } }, "daytona.ttlMinutes"],
  ["two values for one idle time", { idleTimeout: 60_000, daytona: { autoStopMinutes: 5 } }, "daytona.autoStopMinutes"],
  ["an image and a snapshot", { image: "debian:12", daytona: { snapshot: "daytona-small" } }, "image"],
] as [string, SandboxOptions, string][])("%s is a wrong argument", async (_what, opts, word) => {
  await expectRefused(there.open(opts), "invalid_argument", word);
});

test("a key is never in the error about it", async () => {
  const error: unknown = await there
    .open({ daytona: { apiKey: "dtn_secret secret" } })
    .catch((reason: unknown) => reason);
  expect(String(error)).toContain("daytona.apiKey");
  expect(String(error)).not.toContain("dtn_secret");
});

test.each([
  ["limits", { limits: { memory: 1 << 30 } }],
  ["baseDir", { baseDir: "/tmp" }],
  ["mounts", { mounts: [{ source: "/tmp" }] }],
  ["workspace", { repo: "acme/widgets", workspace: "overlay" }],
  ["gitFilters", { repo: "acme/widgets", gitFilters: ["lfs"] }],
  ["gitAlternates", { repo: "acme/widgets", gitAlternates: ["/srv/objects"] }],
  ["network.allow", { network: { allow: ["example.org:8443"] } }],
  ["names or addresses", { network: { allow: ["example.org", "1.1.1.1"] } }],
  ["network.allow", { network: { allow: ["2606:4700:4700::1111"] } }],
] as [string, SandboxOptions][])("%s cannot be kept and is refused before anything is made", async (word, opts) => {
  await expectRefused(there.open(opts), "unsupported", word);
});

describe("reading", () => {
  test.each([
    "acme/widgets",
    "https://github.com/acme/widgets",
    "https://github.com/acme/widgets.git",
    "git@github.com:acme/widgets.git",
    "ssh://git@github.com/acme/widgets.git",
  ])("%s is cloned by HTTPS", (repo) => {
    expect(readSource(repo, {})).toEqual({
      owner: "acme",
      name: "widgets",
      url: "https://github.com/acme/widgets.git",
    });
  });

  test("options come before the environment, and that before the defaults", () => {
    const env = { DAYTONA_API_KEY: "from-env", DAYTONA_API_URL: "https://env.example", DAYTONA_TARGET: "eu" };
    expect(readAccount({}, env)).toEqual({ apiKey: "from-env", apiUrl: "https://env.example", target: "eu" });
    expect(readAccount({ daytona: { apiKey: "mine", target: "us" } }, env)).toMatchObject({
      apiKey: "mine",
      target: "us",
    });
    expect(readAccount({}, { DAYTONA_API_KEY: "k" })).toEqual({
      apiKey: "k",
      apiUrl: "https://app.daytona.io/api",
      target: "us",
    });
  });

  test.each([
    ["DAYTONA_API_KEY", { DAYTONA_API_KEY: "dtn_key\n" }],
    ["DAYTONA_API_URL", { DAYTONA_API_KEY: "k", DAYTONA_API_URL: "http://daytona.example" }],
  ])("a wrong %s of the environment is named, and a key is not shown", (name, env) => {
    expect(() => readAccount({}, env)).toThrow(name);
    expect(() => readAccount({}, env)).not.toThrow("dtn_key");
  });

  test("a server of GitHub's that is not safe is refused", () => {
    expect(() => readSource("acme/widgets", { GITHUB_SERVER_URL: "http://example.com" })).toThrow("GITHUB_SERVER_URL");
  });
});

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { SandboxError } from "../../contracts/errors.js";
import type { Capabilities } from "../../contracts/types.js";
import { assertCapabilities, type CapabilityRequest } from "../../src/sandbox/capabilities.js";
import "../../src/sandbox/registry.js";
import { validateSandboxOptions } from "../../src/sandbox/lifecycle/options.js";
import { branchNameFault } from "../../src/util/git/branch-name.js";
import { nearestName } from "../../src/util/nearest.js";

function refusal(work: () => void): SandboxError {
  try {
    work();
  } catch (error) {
    expect(error).toBeInstanceOf(SandboxError);
    return error as SandboxError;
  }
  throw new Error("expected a refusal");
}

const refused: [name: string, opts: unknown, text: string, code?: string][] = [
  ["no object", 5, "options"],
  ["an array", [], "options"],
  ["unknown option", { brunch: "x" }, '"brunch"'],
  ["unknown limit", { limits: { memroy: 5 } }, '"memroy" in limits'],
  ["unknown network key", { network: { alow: [] } }, '"alow" in network'],
  ["unknown mount key", { mounts: [{ source: "/a", path: "/b" }] }, '"path" in mounts[0]'],
  ["repo as number", { repo: 5 }, "repo"],
  ["repo like an option", { repo: "--upload-pack=x" }, "--upload-pack=x"],
  ["repo that runs a program", { repo: "ext::sh -c id" }, "ext::sh"],
  ["repo with NUL", { repo: "a\0b" }, "repo", "invalid_path"],
  ["long repo", { repo: "a".repeat(5000) }, "repo", "invalid_path"],
  ["long baseDir", { baseDir: "a".repeat(5000) }, "baseDir", "invalid_path"],
  ["branch without repo", { branch: "x" }, "branch"],
  ["workspace without repo", { workspace: "copy" }, "workspace"],
  ["baseDir with repo", { baseDir: "/a", repo: "/b" }, "baseDir"],
  ["workDir with baseDir", { workDir: "/workspace", baseDir: "/a" }, "baseDir", "unsupported"],
  ["workDir with id", { workDir: "/workspace", id: "a" }, "workDir"],
  ["workDir as number", { workDir: 5 }, "workDir"],
  ["workDir in a system folder", { workDir: "/usr/share/app" }, "it is in a folder of the system (/usr)"],
  ["workDir around a system folder", { workDir: "/var" }, "it contains a folder of the system (/var/run)"],
  ["long workDir", { workDir: `/${"a".repeat(2000)}` }, "1024 bytes"],
  ["workDir with a line break", { workDir: "/a\nb" }, "control character"],
  ["id with repo", { id: "a", repo: "/b" }, "repo"],
  ["id with baseDir", { id: "a", baseDir: "/b" }, "baseDir"],
  ["id with a slash", { id: "../a" }, '"../a"'],
  ["unknown workspace", { repo: "/a", workspace: "clone" }, '"clone"'],
  ["image like an option", { image: "-v" }, '"-v"'],
  ["keep as text", { keep: "yes" }, "keep"],
  ["zero operationTimeout", { operationTimeout: 0 }, "operationTimeout"],
  ["negative runTimeout", { runTimeout: -1 }, "-1"],
  ["NaN timeout", { operationTimeout: Number.NaN }, "NaN"],
  ["broken timeout", { operationTimeout: 0.5 }, "0.5"],
  ["text timeout", { operationTimeout: "5" }, '"5"'],
  ["negative cap", { maxOutput: -1 }, "maxOutput"],
  ["env key", { env: { "1A": "x" } }, 'Invalid env key "1A" — must match [A-Za-z_][A-Za-z0-9_]*'],
  ["env value", { env: { A: "\0" } }, "env.A"],
  ["allow as text", { allow: "ls" }, "allow"],
  ["empty allowed name", { allow: ["ls", ""] }, "allow[1]"],
  ["unknown network", { network: "some" }, '"some"'],
  ["network without a list", { network: {} }, "network"],
  ["host with a space", { network: { allow: ["a b"] } }, "network.allow[0]"],
  ["zero memory", { limits: { memory: 0 } }, "limits.memory"],
  ["negative cpus", { limits: { cpus: -1 } }, "limits.cpus"],
  ["zero cpus", { limits: { cpus: 0 } }, "limits.cpus"],
  ["broken pids", { limits: { pids: 1.5 } }, "limits.pids"],
  ["disk as text", { limits: { disk: "1G" } }, "limits.disk"],
  ["unknown isolation", { isolation: "some" }, '"some"'],
  ["mount without source", { mounts: [{}] }, "mounts[0].source"],
  ["relative target", { mounts: [{ source: "/a", target: "b" }] }, "mounts[0].target"],
  ["no signal", { signal: 5 }, "signal"],
  ["no listener", { onEvent: 5 }, "onEvent"],
  ["backend options as text", { docker: "x" }, "docker"],
];

describe("options of a sandbox", () => {
  test.each(refused)("%s is refused", (_name, opts, text, code = "invalid_argument") => {
    const error = refusal(() => validateSandboxOptions(opts));
    expect(error.code).toBe(code);
    expect(error.message).toContain(text);
  });

  test("what is right is taken, and undefined counts as absent", () => {
    for (const opts of [
      {},
      { repo: "https://example.com/a.git", branch: "feature/a-1.2_x", workspace: "overlay" },
      { repo: "git@example.com:a/b.git" },
      { baseDir: "/srv/a", repo: undefined, branch: undefined },
      { id: "sb-12_a.b", keep: true, network: "none", env: { A: "b" } },
      { network: { allow: ["example.com", "*.example.org"] }, limits: { memory: 1, cpus: 0.5, pids: 1, disk: 1 } },
      { mounts: [{ source: "/a", target: "/b", writable: true }, { source: "c" }], allow: ["ls"], isolation: "none" },
      { operationTimeout: 1, runTimeout: 1, maxOutput: 0, githubToken: "t", signal: new AbortController().signal },
      { daytona: {}, docker: {}, vercel: {}, dagger: {}, onEvent: () => undefined },
    ]) {
      expect(() => validateSandboxOptions(opts)).not.toThrow();
    }
  });

  test("the nearest known name is in the hint", () => {
    expect(refusal(() => validateSandboxOptions({ operationTimeOut: 5 })).hint).toContain('"operationTimeout"');
    expect(refusal(() => validateSandboxOptions({ limits: { memroy: 5 } })).hint).toContain('"memory"');
    expect(refusal(() => validateSandboxOptions({ zzzzzzzz: 5 })).hint).toContain("known options: backend, repo");
  });

  test("secrets are not in the message", () => {
    const token = refusal(() => validateSandboxOptions({ githubToken: "ghp secret" }));
    expect(token.message).not.toContain("secret");
    const url = refusal(() => validateSandboxOptions({ repo: "-https://me:secret@example.com/a" }));
    expect(url.message).not.toContain("secret");
  });
});

describe("names of branches", () => {
  test.each(["a", "main", "feature/x-1", "v1.2.3", "A_b"])("%s is one", (name) => {
    expect(branchNameFault(name)).toBeUndefined();
  });

  test.each([
    ...[
      "",
      "--upload-pack=x",
      "a..b",
      "x.lock",
      "a.lock/b",
      "a//b",
      "a/",
      "a.",
      "/a",
      ".a",
      "a/.b",
      "HEAD",
      "@",
      "a@{1}",
    ],
    ...["a b", "a~1", "a^", "a:b", "a?", "a*", "a[b", "a\\b", "a\nb", "a\0b", "ä", "a".repeat(201)],
  ])("%j is none", (name) => {
    expect(branchNameFault(name)).toBeTypeOf("string");
    const error = refusal(() => validateSandboxOptions({ repo: "/a", branch: name }));
    expect(error.code).toBe("invalid_argument");
    expect(error.message).toContain("branch");
  });
});

describe("the nearest name", () => {
  test("a name with one fault finds its way back", () => {
    const known = ["operationTimeout", "maxOutput", "network", "isolation"];
    fc.assert(
      fc.property(fc.constantFrom(...known), fc.nat(), (name, at) => {
        const place = at % name.length;
        expect(nearestName(name.slice(0, place) + name.slice(place + 1), known)).toBe(name);
      }),
    );
  });

  test("what is far from everything has none", () => {
    expect(nearestName("qqqqqq", ["network", "repo"])).toBeUndefined();
    expect(nearestName("--cwd", ["--id", "--repo"])).toBeUndefined();
  });
});

describe("enforce or refuse", () => {
  const nothing: Capabilities = {
    isolation: "none",
    killTree: "best-effort",
    network: ["full"],
    limits: ["pids"],
    snapshot: "none",
    fork: "none",
    pty: false,
    user: false,
    ports: false,
    git: false,
  };
  const requests: [request: CapabilityRequest, text: string, code: string][] = [
    [{ network: "none" }, 'network "none"', "unsupported"],
    [{ network: { allow: ["a"] } }, "network { allow }", "unsupported"],
    [{ limits: { pids: 5, memory: 7 } }, "limits.memory (7)", "unsupported"],
    [{ pty: { cols: 1, rows: 1 } }, "pty", "unsupported"],
    [{ user: "bob" }, 'user ("bob")', "unsupported"],
    [{ ports: 80 }, "ports", "unsupported"],
    [{ isolation: "required" }, "isolate", "no_isolation"],
  ];

  test.each(requests)("%j cannot be kept", (request, text, code) => {
    const error = refusal(() => assertCapabilities(request, nothing, "thing"));
    expect(error).toMatchObject({ code, backend: "thing" });
    expect(error.message).toContain("thing");
    expect(error.message).toContain(text);
  });

  test("what can be kept is not refused", () => {
    const all: Capabilities = {
      ...nothing,
      isolation: "container",
      network: ["none", "full", "allow"],
      limits: ["memory", "pids"],
      pty: true,
      user: true,
      ports: true,
    };
    for (const [request] of requests) expect(() => assertCapabilities(request, all, "thing")).not.toThrow();
    expect(() => assertCapabilities({}, nothing, "thing")).not.toThrow();
  });
});

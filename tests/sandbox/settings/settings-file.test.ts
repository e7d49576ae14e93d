import { execFileSync } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { SandboxError } from "../../../contracts/errors.js";
import { policiesInForce } from "../../../src/sandbox/settings/policies.js";
import { loadUserConfig, userConfigPath } from "../../../src/sandbox/settings/user-config.js";
import { openSandbox } from "../../../src/sandbox.js";
import { withEnv } from "../../support/environment.js";
import { createScratch, type Scratch } from "../../support/scratch.js";

let scratch: Scratch;
beforeAll(() => {
  scratch = createScratch();
});
afterAll(() => scratch.remove());

let count = 0;

/** A directory of its own for each file. */
function place(): string {
  count += 1;
  const folder = join(scratch.path, String(count));
  mkdirSync(folder, { mode: 0o700 });
  return join(folder, "file.yaml");
}

function write(text: string): string {
  const path = place();
  writeFileSync(path, text, { mode: 0o644 });
  return path;
}

async function failureOf(work: Promise<unknown>): Promise<SandboxError> {
  const error: unknown = await work.then(
    () => undefined,
    (failure: unknown) => failure,
  );
  if (error instanceof SandboxError) return error;
  throw new Error(`expected a SandboxError, got ${String(error)}`);
}

/** A bomb of 10^9 entries. */
const BOMB = [
  "a0: &a0 [x]",
  ...[...Array(9).keys()].map((n) => `a${n + 1}: &a${n + 1} [${Array(10).fill(`*a${n}`).join(", ")}]`),
];

const bad: Record<string, [() => string, RegExp]> = {
  "an unknown key": [() => write("netwrok: none\n"), /Unknown option "netwrok"/],
  "a group that may write": [
    () => {
      const path = write("network: none\n");
      chmodSync(path, 0o664);
      return path;
    },
    /can be written by other users/,
  ],
  "a directory that others may write": [
    () => {
      const path = write("network: none\n");
      chmodSync(join(path, ".."), 0o777);
      return path;
    },
    /can be written by other users/,
  ],
  "a link": [
    () => {
      const path = place();
      symlinkSync(write("network: none\n"), path);
      return path;
    },
    /is a symbolic link/,
  ],
  "a link to nothing": [
    () => {
      const path = place();
      symlinkSync("/nonexistent", path);
      return path;
    },
    /is a symbolic link/,
  ],
  "a directory": [
    () => {
      const path = place();
      mkdirSync(path);
      return path;
    },
    /is not a regular file/,
  ],
  "a FIFO": [
    () => {
      const path = place();
      execFileSync("mkfifo", ["-m", "600", path]);
      return path;
    },
    /is not a regular file/,
  ],
  "1 MiB": [() => write(`# ${"x".repeat(1 << 20)}\n`), /1048579 bytes, at most 65536 are possible/],
  "a bomb of aliases": [() => write(`${BOMB.join("\n")}\n`), /too many aliases/],
  "a key twice": [() => write("network: none\nnetwork: full\n"), /unique/],
  "what is no YAML": [() => write("network: [\n"), /./],
  "a list": [() => write("- network\n"), /expected an object/],
  "a wrong word": [() => write("network: nothing\n"), /Invalid network: expected none, full or a list named allow/],
  "a backend with a typing error": [() => write("backends: { dokcer: {} }\n"), /backends/],
  "an allowed host that can never match": [
    () => write("network: { allow: ['https://example.com/x'] }\n"),
    /without a scheme/,
  ],
};

describe.each(Object.entries(bad))("a file with %s", (_, [make, message]) => {
  test("is refused as a configuration, with its path", async () => {
    const path = make();
    const error = await failureOf(loadUserConfig({ GLOVEBOX_CONFIG: path }));
    expect(error.message).toContain(join(path, ".."));
    expect(error.message).toMatch(message);
  });

  test("refuses everything as a policy, also as one of the machine", async () => {
    const path = make();
    const opening = failureOf(withEnv({ GLOVEBOX_POLICY: path }, () => openSandbox({ backend: "local" })));
    expect(await opening).toMatchObject({ code: "permission_denied" });
    expect((await opening).message).toContain(`The policy ${path} can't be used, so nothing is allowed`);
    expect(await failureOf(policiesInForce({ machine: path, extra: undefined }))).toMatchObject({
      code: "permission_denied",
    });
  });
});

test("an unknown key comes with the nearest name", async () => {
  const config = { GLOVEBOX_CONFIG: write("bakend: local\n") };
  expect(await failureOf(loadUserConfig(config))).toMatchObject({ hint: 'did you mean "backend"?' });
  const extra = write("bakends: [local]\n");
  expect(await failureOf(policiesInForce({ extra }))).toMatchObject({ hint: 'did you mean "backends"?' });
});

test("a file of somebody else is refused", async ({ skip }) => {
  if (process.geteuid?.() !== 0) skip("only root can give a file away");
  const path = write("network: none\n");
  chownSync(path, 1234, 1234);
  expect((await failureOf(loadUserConfig({ GLOVEBOX_CONFIG: path }))).message).toMatch(/belongs to user 1234/);
  expect((await failureOf(policiesInForce({ extra: path }))).message).toMatch(/belongs to user 1234/);
  expect((await failureOf(policiesInForce({ machine: path }))).message).toMatch(/belongs to user 1234, not to root/);
});

test("a policy of the machine that belongs to an ordinary user is refused, even by that user", async ({ skip }) => {
  if (process.geteuid?.() === 0) skip("root is no ordinary user");
  expect((await failureOf(policiesInForce({ machine: write("network: none\n") }))).message).toMatch(/not to root/);
});

test.each([
  ["backends: []", "backends"],
  ["backends: [dokcer]", 'did you mean "docker"'],
  ["images: ['Node:*']", "images[0]"],
  ["images: ['https://registry.example/*']", "images[0]"],
  ["images: []", "images"],
  ["mounts: { under: [data] }", "mounts.under[0]"],
  ["mounts: { under: [/srv/../etc] }", "mounts.under[0]"],
  ["network: { allow: [] }", "network.allow"],
  ["limits: { memory: { max: 1g, default: 2g } }", "limits.memory.default"],
  ["limits: { memory: 0 }", "limits.memory"],
  ["ttl: { max: 1h, default: 2h }", "ttl.default"],
  ["ttl: 31d", "ttl"],
  ["isolation: none", "isolation"],
])("a rule that can never match, or loosens, is refused: %s", async (text, name) => {
  expect((await failureOf(policiesInForce({ extra: write(`${text}\n`) }))).message).toContain(name);
});

test("a policy that GLOVEBOX_POLICY names must be there, and absolute", async () => {
  const missing = await failureOf(policiesInForce({ machine: place(), extra: place() }));
  expect([missing.code, missing.message]).toEqual(["permission_denied", expect.stringContaining("does not exist")]);
  expect((await failureOf(policiesInForce({ extra: "policy.yaml" }))).message).toContain("not absolute");
});

test("no file is no policy, and no configuration", async () => {
  expect(await policiesInForce({ machine: place(), extra: undefined })).toEqual([]);
  expect(await loadUserConfig({ XDG_CONFIG_HOME: scratch.path })).toBeUndefined();
  expect((await failureOf(loadUserConfig({ GLOVEBOX_CONFIG: place() }))).code).toBe("not_found");
});

test("GLOVEBOX_POLICY is added to the policy of the machine, never in place of it", async () => {
  const [machine, extra] = [write("network: none\n"), write("isolation: required\n")];
  const [first, second] = await policiesInForce({ machine, extra });
  expect([first?.rules, second?.rules]).toEqual([{ network: "none" }, { isolation: "required" }]);
});

test("a changed file is read again", async () => {
  const path = write("network: none\n");
  expect((await policiesInForce({ extra: path }))[0]?.rules.network).toBe("none");
  writeFileSync(path, "network: { allow: [example.com] }\n");
  expect((await policiesInForce({ extra: path }))[0]?.rules.network).toEqual({ allow: ["example.com"] });
});

test("the path is that of the variable, of XDG_CONFIG_HOME, or of the home", () => {
  expect(userConfigPath({ GLOVEBOX_CONFIG: "/a/b.yaml", XDG_CONFIG_HOME: "/x" })).toBe("/a/b.yaml");
  expect(userConfigPath({ XDG_CONFIG_HOME: "/x" })).toBe("/x/glovebox/config.yaml");
  expect(userConfigPath({ XDG_CONFIG_HOME: "relative" })).toMatch(/^\/.*\/\.config\/glovebox\/config\.yaml$/);
  expect(() => userConfigPath({ GLOVEBOX_CONFIG: "b.yaml" })).toThrow(/must be an absolute path/);
});

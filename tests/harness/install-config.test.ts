import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { INSTALL_TOOLS } from "../../src/harness/install/all-tools.js";
import { type InstallWish, planInstall } from "../../src/harness/install/plan-install.js";
import type { ToolSettings } from "../../src/harness/install/tool.js";
import { userConfig } from "../../src/harness/install/user-config.js";
import { createFakeTools } from "../support/harness/fake-tools.js";
import { createScratch } from "../support/scratch.js";

const HOME = "/home/somebody";
const scratch = createScratch();
afterAll(() => scratch.remove());
/** What the tools of this user say when nothing is configured. */
const SAID = {
  npm: ["https://registry.example/"],
  pnpm: ["https://pnpm.example/"],
  yarn: ["https://yarn.example/"],
  python3: ["https://index.example/simple", "https://files.example"],
  go: ["https://proxy.example,direct", "sums.example"],
};
const TOOLS = createFakeTools(join(scratch.path, "bin"), SAID);
const NO_TOOLS = createFakeTools(join(scratch.path, "empty"), {});
/** The configuration of a user with these files and variables, and no others. */
const user = (files: Readonly<Record<string, string>> = {}, env: Record<string, string> = {}): ToolSettings => ({
  ...userConfig(undefined, { env: { PATH: TOOLS, ...env }, home: HOME }),
  read: (path) => files[path],
});
const at = (...parts: string[]): string => join(HOME, ...parts);
const plan = (files: Readonly<Record<string, string>>, more: Partial<InstallWish> = {}) =>
  planInstall({
    files: { read: async (name) => files[name] },
    config: user(),
    network: "none",
    copied: [],
    ...more,
  });
const reachOf = async (...args: Parameters<typeof plan>): Promise<(readonly string[])[]> =>
  (await plan(...args)).steps.map(({ reach }) => reach);

const npmLock = (...resolved: string[]): string =>
  JSON.stringify({
    lockfileVersion: 3,
    packages: Object.fromEntries([
      ["", { name: "p", funding: { url: "https://sponsors.test" } }],
      ...resolved.map((address, n) => [`node_modules/x${n}`, { version: "1.0.0", resolved: address }]),
    ]) as object,
  });
const LOCKS: Readonly<Record<string, { file: string; text: string; run: string[]; reach?: string[] }>> = {
  npm: {
    file: "package-lock.json",
    text: npmLock("https://registry.example/x/-/x-1.0.0.tgz"),
    run: ["npm", "ci"],
    reach: ["registry.example:443"],
  },
  shrinkwrap: {
    file: "npm-shrinkwrap.json",
    text: JSON.stringify({ dependencies: { x: { version: "1.0.0", dependencies: { y: { version: "1.0.0" } } } } }),
    run: ["npm", "ci"],
    reach: ["registry.example:443"],
  },
  pnpm: {
    file: "pnpm-lock.yaml",
    text: "lockfileVersion: '9.0'\npackages:\n  x@1.0.0:\n    resolution: {integrity: sha512-x}\n    deprecated: see https://deprecated.test\n",
    run: ["pnpm", "install", "--frozen-lockfile"],
    reach: ["pnpm.example:443"],
  },
  "yarn 1": {
    file: "yarn.lock",
    text: `# yarn lockfile v1\nx@1:\n  version "1.0.0"\n  resolved "https://yarn.example/x/-/x-1.0.0.tgz"\n`,
    run: ["yarn", "install", "--frozen-lockfile", "--non-interactive"],
    reach: ["yarn.example:443"],
  },
  "yarn 4": {
    file: "yarn.lock",
    text: '__metadata:\n  version: 8\n"x@npm:1":\n  version: 1.0.0\n  resolution: "x@npm:1.0.0"\n',
    run: ["yarn", "install", "--immutable"],
    reach: ["yarn.example:443"],
  },
  uv: {
    file: "uv.lock",
    text: `[[package]]\nname = "x"\nsource = { registry = "https://index.example/simple" }\nwheels = [{ url = "https://files.example/x.whl" }]\n`,
    run: ["uv", "sync", "--frozen"],
  },
  pip: {
    file: "requirements.txt",
    text: "# see https://comment.test\nx==1.0.0 # https://comment.test\n",
    run: ["python3", "-mpip", "install", "--requirement", "requirements.txt"],
    reach: ["index.example:443", "files.example:443"],
  },
  cargo: {
    file: "Cargo.lock",
    text: `[[package]]\nname = "x"\nsource = "registry+https://github.com/rust-lang/the-index"\n`,
    run: ["cargo", "fetch", "--locked"],
  },
  go: {
    file: "go.sum",
    text: "example.test/x v1.0.0 h1:x=\n",
    run: ["go", "mod", "download"],
    reach: ["proxy.example:443", "sums.example:443"],
  },
};

describe("without any configuration", () => {
  const sayers = Object.entries(LOCKS).filter(([, { reach }]) => reach !== undefined);

  test.each(sayers)("%s runs its frozen command and reaches what the tool says", async (_, lock) => {
    const { steps, notes } = await plan({ [lock.file]: lock.text });
    expect(notes).toEqual([]);
    expect(steps).toMatchObject([{ lockfile: lock.file, run: lock.run, reach: lock.reach, hasSecret: false }]);
  });

  test.each(Object.entries(LOCKS))(
    "%s is left out where no tool says it, unless the run is opened",
    async (_, lock) => {
      const config = user({}, { PATH: NO_TOOLS });
      const { steps, notes } = await plan({ [lock.file]: lock.text }, { config });
      expect(steps).toEqual([]);
      expect(notes).toMatchObject([
        expect.stringMatching(/is left out: your configuration of \w+ names no registry, and /),
      ]);
      expect(notes[0]).toMatch(lock.reach === undefined ? /can't say where/ : /there is no \w+ in PATH/);
      expect(notes[0]).toMatch(/--network allow=\S+ (\(named by .*\) )?gives the whole run its hosts$/);
      const allow = ["registry.example", "yarn.example", "index.example", "files.example"];
      const opened = await plan({ [lock.file]: lock.text }, { config, network: { allow }, isOpened: true });
      expect(opened).toMatchObject({ steps: [{ run: lock.run, reach: [] }], notes: [] });
    },
  );

  test("uv and cargo are left out although they are there, with the hosts of the lockfile in the flag", async () => {
    const tools = createFakeTools(join(scratch.path, "can-not-say"), { uv: ["https://evil.test"], cargo: ["x"] });
    const config = user({}, { PATH: tools });
    const { steps, notes } = await plan(
      { "uv.lock": LOCKS["uv"]?.text ?? "", "Cargo.lock": LOCKS["cargo"]?.text ?? "" },
      { config },
    );
    expect(steps).toEqual([]);
    expect(notes[0]).toContain("--network allow=files.example,index.example (named by uv.lock)");
    expect(notes[1]).toContain("--network allow=<host>");
  });

  test("a step that a blueprint names is run all the same, with a warning", async () => {
    const config = user({}, { PATH: NO_TOOLS });
    const { steps, notes } = await plan({}, { config, own: ["npm", "install"] });
    expect(steps).toMatchObject([{ id: "install-npm", reach: [] }]);
    expect(notes.join()).toMatch(/may lack a registry: .*there is no npm in PATH; --network allow=<host>/);
  });

  test("one tool of each ecosystem is taken, and a lockfile that names nothing is none", async () => {
    const all = Object.fromEntries(Object.values(LOCKS).map(({ file, text }) => [file, text]));
    expect((await plan(all, { network: "full", isOpened: true })).steps.map(({ id }) => id)).toEqual([
      "install-npm",
      "install-uv",
      "install-cargo",
      "install-go",
    ]);
    const empty = {
      "package-lock.json": npmLock(),
      "requirements.txt": "# nothing\n\n",
      "Cargo.lock": '[[package]]\nname = "p"\n',
      "go.sum": "\n",
      "uv.lock": '[[package]]\nname = "p"\nsource = { virtual = "." }\n',
    };
    expect((await plan(empty)).steps).toEqual([]);
  });
});

describe("the user's own configuration decides", () => {
  const npmrc = `registry = https://user:pw@mirror.test/npm/\n@mine:registry="https://\${SCOPE}.test/"\n//mirror.test/npm/:_authToken=secret-word\n; x\n`;

  test("npm: main and scoped registries, no secrets, the global file below the user's", async () => {
    const files = {
      [at(".npmrc")]: npmrc,
      "/global/npmrc": "registry=https://global.test/\n@old:registry=https://old.test/",
    };
    const config = user(files, { SCOPE: "scoped", NPM_CONFIG_GLOBALCONFIG: "/global/npmrc" });
    const { steps } = await plan({ "package-lock.json": LOCKS["npm"]?.text ?? "" }, { config });
    expect(steps).toMatchObject([
      {
        run: ["npm", "ci", "--@old:registry=https://old.test/", "--@mine:registry=https://scoped.test/"],
        env: { npm_config_registry: "https://mirror.test/npm/" },
        reach: ["mirror.test:443", "old.test:443", "scoped.test:443"],
        hasSecret: true,
      },
    ]);
    expect(JSON.stringify(steps)).not.toMatch(/secret-word|pw/);
  });

  test("npm: below npm itself, variables in lower case may come from the project and do not count", async () => {
    const lock = { "package-lock.json": npmLock("https://mirror.test/x.tgz") };
    const variables = { npm_config_registry: "https://mirror.test/" };
    expect(await reachOf(lock, { config: user({}, variables) })).toEqual([["mirror.test:443"]]);
    const below = user({}, { ...variables, npm_execpath: "/usr/lib/npm" });
    await expect(plan(lock, { config: below })).rejects.toMatchObject({ code: "permission_denied" });
    const capital = user({}, { NPM_CONFIG_REGISTRY: "https://mirror.test/", npm_execpath: "/usr/lib/npm" });
    expect(await reachOf(lock, { config: capital })).toEqual([["mirror.test:443"]]);
  });

  test("npm: what the project sets itself is left to it, once it was allowed", async () => {
    const files = {
      "package-lock.json": npmLock("https://project.test/x.tgz"),
      ".npmrc": "registry=https://project.test/\n",
    };
    const config = user({ [at(".npmrc")]: "registry=https://mirror.test/" });
    const { steps } = await plan(files, { config, network: { allow: ["project.test"] } });
    expect(steps[0]?.env).not.toHaveProperty("npm_config_registry");
  });

  test.each<[string, keyof typeof LOCKS, ToolSettings, string[]]>([
    ["pnpm", "pnpm", user({ [at(".config/pnpm/rc")]: "registry=https://mirror.test/" }), ["mirror.test:443"]],
    [
      "yarn 4",
      "yarn 4",
      user({
        [at(".yarnrc.yml")]:
          'npmRegistryServer: "https://mirror.test"\nnpmScopes:\n  mine:\n    npmRegistryServer: https://scoped.test\n',
      }),
      ["mirror.test:443", "scoped.test:443"],
    ],
    [
      "yarn 4 by a variable",
      "yarn 4",
      user({}, { YARN_NPM_REGISTRY_SERVER: "http://mirror.test:4873" }),
      ["plain://mirror.test:4873"],
    ],
    [
      "pip",
      "pip",
      user({
        [at(".config/pip/pip.conf")]:
          "[global]\nindex-url = https://mirror.test/simple\nextra-index-url =\n    https://a.test/simple\n    https://b.test/simple\n",
      }),
      ["mirror.test:443", "a.test:443", "b.test:443"],
    ],
    [
      "pip by a variable",
      "pip",
      user({}, { PIP_INDEX_URL: "http://mirror.test:3141/root" }),
      ["plain://mirror.test:3141"],
    ],
    [
      "cargo",
      "cargo",
      user({
        [at(".cargo/config.toml")]:
          '[source.crates-io]\nreplace-with = "m"\n[source.m]\nregistry = "sparse+https://mirror.test/index/"\n[registries]\nmine = { index = "sparse+https://mine.test/" }\n',
      }),
      ["mirror.test:443", "mine.test:443"],
    ],
    ["go", "go", user({}, { GOPROXY: "https://mirror.test|direct", GOSUMDB: "off" }), ["mirror.test:443"]],
    [
      "go by its file",
      "go",
      user({ [at(".config/go/env")]: "GOPROXY=https://mirror.test\nGOSUMDB=sum.test+1+key https://sums.test\n" }),
      ["mirror.test:443", "sums.test:443"],
    ],
  ])("%s", async (_, name, config, reach) => {
    const { file = "", text = "" } = LOCKS[name] ?? {};
    expect(await reachOf({ [file]: text }, { config })).toEqual([reach]);
  });

  test("uv: its files and variables", async () => {
    const lock = {
      "uv.lock": 'source = { registry = "https://mirror.test/simple" }\nurl = "https://files.test/x.whl"\n',
    };
    const file =
      'index-url = "https://mirror.test/simple"\n\n[[index]]\nname = "more"\nurl = "https://files.test/simple"\n';
    const config = user({ [at(".config/uv/uv.toml")]: file });
    expect(await reachOf(lock, { config })).toEqual([["mirror.test:443", "files.test:443"]]);
    const variables = { UV_DEFAULT_INDEX: "https://mirror.test/simple", UV_INDEX: "more=https://files.test/simple" };
    expect(await reachOf(lock, { config: user({}, variables) })).toEqual([["mirror.test:443", "files.test:443"]]);
  });

  test("a registry that no sandbox can reach leaves the step out", async () => {
    const config = user({}, { NPM_CONFIG_REGISTRY: "http://localhost:4873/" });
    const { steps, notes } = await plan({ "package-lock.json": LOCKS["npm"]?.text ?? "" }, { config });
    expect(steps).toEqual([]);
    expect(notes.join()).toMatch(/localhost:4873, which no sandbox can reach; --copy node_modules/);
  });
});

describe("hosts that only the repository names are refused", () => {
  // These two are left out as long as nothing is configured.
  const cargo = '[source.crates-io]\nreplace-with = "m"\n[source.m]\nregistry = "sparse+https://mirror.test/"\n';
  const SOURCES = user({ [at(".cargo/config.toml")]: cargo }, { UV_DEFAULT_INDEX: "https://mirror.test/simple" });

  test.each<[string, string, string]>([
    ["package-lock.json", npmLock("https://evil.test/x.tgz"), "evil.test"],
    ["package-lock.json", npmLock("git+ssh://git@evil.test/x.git#1"), "plain://evil.test:22"],
    ["package-lock.json", '{"dependencies":{"a":{"version":"https://evil.test/a.tgz"}}}', "evil.test"],
    ["pnpm-lock.yaml", "packages:\n  x:\n    resolution: {tarball: https://evil.test/x.tgz}\n", "evil.test"],
    ["yarn.lock", 'x@1:\n  version "1.0.0"\n  resolved "https://evil.test/x.tgz"\n', "evil.test"],
    [
      "yarn.lock",
      '__metadata:\n"x":\n  resolution: "y@npm:1"\n  resolution: "x@https://evil.test/x.tgz"\n',
      "evil.test",
    ],
    [
      "yarn.lock",
      '__metadata:\n"x":\n  resolution: "x@npm:1.0.0::__archiveUrl=https%3A%2F%2Fevil.test%2Fx.tgz"\n',
      "evil.test",
    ],
    ["uv.lock", 'source = { registry = "https://evil.test/simple" }\n', "evil.test"],
    ["requirements.txt", "--extra-index-url https://evil.test/simple\nx\n", "evil.test"],
    ["requirements.txt", "x @ git+https://evil.test/x.git\n", "evil.test"],
    ["Cargo.lock", 'source = "sparse+https://evil.test/"\n', "evil.test"],
  ])("%s: %s", async (file, text, entry) => {
    await expect(plan({ [file]: text }, { config: SOURCES })).rejects.toMatchObject({
      code: "permission_denied",
      hint: expect.stringContaining(`--network allow=${entry} `),
    });
    expect((await plan({ [file]: text }, { network: "full", isOpened: true })).steps).toHaveLength(1);
  });

  test("a lockfile made to be slow is not", async () => {
    const long = ["\n".repeat(500_000), "a+".repeat(100_000), 'resolution: "'.repeat(50_000), " ".repeat(500_000)];
    for (const { lockfiles, accepts, named } of INSTALL_TOOLS) {
      if (lockfiles[0]?.endsWith(".json") === true) continue;
      for (const text of long) {
        accepts(text);
        named(text, {});
      }
    }
    expect(INSTALL_TOOLS.length).toBeGreaterThan(6);
  }, 30_000);
});

test("where the network can't be closed again, the step is left out; one that a blueprint names is refused", async () => {
  const files = { "package-lock.json": LOCKS["npm"]?.text ?? "" };
  const closedBecause = "the far backend can't close the network again after it";
  const { steps, notes } = await plan(files, { closedBecause });
  expect(steps).toEqual([]);
  expect(notes.join()).toContain("--network allow=");
  await expect(plan(files, { closedBecause, own: ["npm", "ci"] })).rejects.toMatchObject({ code: "unsupported" });
  expect((await plan(files, { closedBecause, network: "full" })).steps).toHaveLength(1);
});

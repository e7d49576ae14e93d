import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Capabilities } from "../../contracts/types.js";
import { createDaytonaSandbox } from "../../src/sandbox/backends/daytona.js";
import { createExecutor, getSandboxExecutor, type SandboxExecutor } from "../../src/sandbox/executor.js";
import { openSandbox } from "../../src/sandbox/open.js";
import { backendNames, chooseBackend, registerBackend } from "../../src/sandbox/registry.js";
import type { Backend, SandboxOptions } from "../../src/sandbox/types.js";
import { CAPABILITIES, openPlainDriver, type PlainDriver } from "../fixtures/plain-driver.js";

const opened: SandboxOptions[] = [];
/** What a backend does not isolate is refused unless it is asked for. */
const ISOLATED: Capabilities = { ...CAPABILITIES, isolation: "remote" };
const plain: Backend = {
  name: "plain",
  capabilities: () => ISOLATED,
  async create(opts, entry) {
    opened.push(opts);
    return Object.assign(await openPlainDriver(), { id: entry.id });
  },
  removeResource: async () => undefined,
};
registerBackend("plain", async () => plain);

/** A module with a backend whose sandboxes cannot be made. */
function moduleOf(name: string, message: string): string {
  const create = `create: async () => { throw new Error('${message}'); }`;
  const capabilities = `capabilities: () => (${JSON.stringify(ISOLATED)})`;
  return `export const backend = { name: "${name}", ${capabilities}, ${create}, removeResource: async () => {} };`;
}

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "glovebox-registry-"));
});
afterAll(async () => {
  await rm(directory, { recursive: true, force: true });
});

describe("opening by name", () => {
  test("a registered backend gets the options, without its own name", async () => {
    await using box = await openSandbox({ backend: "plain", env: { A: "given" } });
    expect((await box.shell("echo $A")).stdout).toBe("given\n");
    expect(opened.at(-1)).toEqual({ env: { A: "given" }, network: "full", signal: expect.any(AbortSignal) });
  });

  test("one that does not isolate is refused unless that is asked for", async () => {
    registerBackend("loose", async () => ({ ...plain, name: "loose", capabilities: () => CAPABILITIES }));
    await expect(openSandbox({ backend: "loose" })).rejects.toMatchObject({ code: "no_isolation" });
    await using box = await openSandbox({ backend: "loose", isolation: "none" });
    expect((await box.shell("echo there")).stdout).toBe("there\n");
  });

  test("the options of a backend are parsed once: a schema may turn them into something else", async () => {
    const seen: unknown[] = [];
    const parse = (value: unknown): unknown => {
      if (!("size" in (value as object))) throw new Error("parsed already");
      return { bytes: Number((value as { size: string }).size) };
    };
    const create: Backend["create"] = async (opts, entry) => {
      seen.push((opts as Record<string, unknown>)["parsing"]);
      return await plain.create(opts, entry);
    };
    registerBackend("parsing", async () => ({ ...plain, name: "parsing", options: { parse }, create }));
    await using _box = await openSandbox({ backend: "parsing", parsing: { size: "7" } } as never);
    expect(seen).toEqual([{ bytes: 7 }]);
  });

  test("a driver with another id than its entry is refused", async () => {
    const create: Backend["create"] = async () => await openPlainDriver();
    registerBackend("stranger", async () => ({ ...plain, name: "stranger", create }));
    await expect(openSandbox({ backend: "stranger" })).rejects.toThrow("is not that of its entry");
  });

  test("an unknown name lists the known ones and the nearest", async () => {
    const call = openSandbox({ backend: "lcoal" });
    await expect(call).rejects.toMatchObject({ code: "invalid_argument", hint: 'did you mean "local"?' });
    await expect(call).rejects.toThrow(/"lcoal"; use local, daytona, docker, vercel, dagger/);
  });

  test.each(["fs", "node:fs", "./no-such-module.js"])("%s is no backend", async (backend) => {
    await expect(openSandbox({ backend })).rejects.toMatchObject({ code: "invalid_argument" });
  });

  test.each(["plain", "plain.txt"])("a module named %s is not run", async (name) => {
    const marker = join(directory, `ran-${name}`);
    const path = join(directory, name);
    await writeFile(path, `import { writeFileSync } from "node:fs";\nwriteFileSync(${JSON.stringify(marker)}, "");\n`);
    await expect(openSandbox({ backend: path })).rejects.toMatchObject({
      code: "invalid_argument",
      hint: expect.stringContaining(".mjs"),
    });
    expect(existsSync(marker)).toBe(false);
  });

  test("daytona asks for its key", async () => {
    await expect(openSandbox({ backend: "daytona" })).rejects.toMatchObject({ code: "unauthenticated" });
    await expect(createDaytonaSandbox({})).rejects.toThrow("Daytona API key required");
  });

  test("bad options are refused before any backend is loaded", async () => {
    const before = opened.length;
    await expect(openSandbox({ backend: "plain", brunch: "x" } as never)).rejects.toMatchObject({
      code: "invalid_argument",
    });
    await expect(openSandbox({ backend: 5 } as never)).rejects.toMatchObject({ code: "invalid_argument" });
    await expect(openSandbox(null as never)).rejects.toMatchObject({ code: "invalid_argument" });
    const aborted = openSandbox({ backend: "plain", signal: AbortSignal.abort() });
    await expect(aborted).rejects.toMatchObject({ code: "aborted" });
    expect(opened.length).toBe(before);
  });

  test("a module is a backend by its path or URL; one without a backend is refused", async () => {
    const path = join(directory, "third.mjs");
    await writeFile(path, moduleOf("third", "reached the third party"));
    for (const backend of [path, pathToFileURL(path).href, `./${relative(process.cwd(), path)}`]) {
      await expect(openSandbox({ backend })).rejects.toThrow("reached the third party");
    }
    const empty = join(directory, "empty.mjs");
    await writeFile(empty, "export const close = 1;");
    await expect(openSandbox({ backend: empty })).rejects.toMatchObject({ code: "invalid_argument" });
    await expect(openSandbox({ backend: empty })).rejects.toThrow('exports no "backend"');
  });

  test("a package is never looked up in the directory that the user is in", async () => {
    const project = join(directory, "project");
    await mkdir(join(project, "node_modules", "planted-backend"), { recursive: true });
    await writeFile(join(project, "package.json"), "{}");
    const body = `globalThis.planted = true; ${moduleOf("planted", "planted")}`;
    await writeFile(join(project, "node_modules", "planted-backend", "index.mjs"), body);
    const manifest = { name: "planted-backend", main: "index.mjs", exports: "./index.mjs" };
    await writeFile(join(project, "node_modules", "planted-backend", "package.json"), JSON.stringify(manifest));
    const before = process.cwd();
    process.chdir(project);
    try {
      for (const backend of ["planted-backend", "node_modules/planted-backend/index.mjs", "data:text/javascript,0"]) {
        await expect(openSandbox({ backend })).rejects.toMatchObject({ code: "invalid_argument" });
      }
      expect((globalThis as { planted?: boolean }).planted).toBeUndefined();
      const path = "./node_modules/planted-backend/index.mjs";
      await expect(openSandbox({ backend: path })).rejects.toThrow("planted");
    } finally {
      process.chdir(before);
    }
  });

  test("a module that is broken is not mistaken for a missing one", async () => {
    const broken = join(directory, "broken.mjs");
    await writeFile(broken, "import 'package-that-nobody-has'; export const backend = 1;");
    const error = await openSandbox({ backend: broken }).catch((failure: unknown) => failure);
    expect(error).not.toMatchObject({ code: "invalid_argument" });
    expect(String(error)).toContain("package-that-nobody-has");
  });

  test("a name is registered once, and must be a name", () => {
    const load = async () => plain;
    expect(() => registerBackend("plain", load)).toThrow(/backend "plain" is already registered/);
    expect(() => registerBackend("local", load)).toThrow(/backend "local" is already registered/);
    for (const name of ["", "A", "a/b", 5]) expect(() => registerBackend(name as never, load)).toThrow(/Invalid name/);
    expect(() => registerBackend("other", 5 as never)).toThrow(/Invalid load/);
    expect(backendNames()).not.toContain("other");
  });
});

describe("choosing", () => {
  const vercel = { VERCEL_TOKEN: "a", VERCEL_TEAM_ID: "b", VERCEL_PROJECT_ID: "c" };
  test.each([
    [{}, "local"],
    [{ GLOVEBOX_BACKEND: "docker", VERCEL: "1" }, "docker"],
    [{ GLOVEBOX_BACKEND: "" }, "local"],
    [{ VERCEL: "1" }, "vercel"],
    [{ VERCEL: "0" }, "local"],
    [{ VERCEL_OIDC_TOKEN: "t" }, "vercel"],
    [vercel, "vercel"],
    [{ ...vercel, VERCEL_TEAM_ID: undefined }, "local"],
  ])("%j is %s", (env, name) => {
    expect(chooseBackend(env)).toBe(name);
  });
});

describe("the executor", () => {
  async function executor(opts: SandboxOptions = {}) {
    let opens = 0;
    const face = createExecutor({
      timeout: async () => 10_000,
      empty: async () => undefined,
      open: () => {
        opens++;
        return openSandbox({ backend: "plain", ...opts });
      },
    });
    return { face, opens: () => opens };
  }

  test("gives a command five minutes where that is not this machine, unless told otherwise", async () => {
    const drivers: PlainDriver[] = [];
    const create: Backend["create"] = async (_, entry) => {
      const driver = await openPlainDriver();
      drivers.push(driver);
      return Object.assign(driver, { id: entry.id });
    };
    registerBackend("watched", async () => ({ ...plain, name: "watched", create }));
    const faces = [{}, { timeout: 7_000 }, {}].map((opts) => getSandboxExecutor({ backend: "watched", ...opts }));
    const [first, second, third] = faces as [SandboxExecutor, SandboxExecutor, SandboxExecutor];
    await first.execute("true");
    await second.execute("true");
    await third.execute("true", [], { timeout: 8_000 });
    const [one = 0, two = 0, three = 0] = drivers.map(({ starts }) => starts[0]?.timeout ?? 0);
    // The driver's own deadline is later than the call's, by the same time for each.
    expect([one - two, three - two]).toEqual([300_000 - 7_000, 8_000 - 7_000]);
    for (const face of faces) await face.cleanup();
  });

  test("opens when first used, once, and again after cleanup", async () => {
    const { face, opens } = await executor();
    expect(opens()).toBe(0);
    const results = await Promise.all([face.execute("echo", ["a b"]), face.listFiles(), face.readFile("none")]);
    expect(results).toEqual([{ stdout: "a b\n", stderr: "", exitCode: 0 }, [], null]);
    expect(opens()).toBe(1);
    await face.writeFile("deep/file", "text");
    expect(await face.readFile("deep/file")).toBe("text");
    expect(await face.listFiles()).toEqual(["deep"]);
    await face.cleanup();
    expect(await face.listFiles()).toEqual([]);
    expect(opens()).toBe(2);
    await face.cleanup();
    await face.cleanup();
  });

  test("a timeout is exit code 124 with a line on stderr", async () => {
    const { face } = await executor();
    const result = await face.execute("sh", ["-c", "echo begun; printf half >&2; sleep 60"], { timeout: 2_000 });
    expect(result).toEqual({ stdout: "begun\n", stderr: "half\ncommand timed out after 2000 ms\n", exitCode: 124 });
    await face.cleanup();
  });

  test("cwd and env are passed on, a failure is a result, missing directories are empty", async () => {
    const { face } = await executor();
    await face.writeFile("sub/a", "");
    const result = await face.execute("sh", ["-c", 'ls; echo "$A"; exit 4'], { cwd: "sub", env: { A: "b" } });
    expect(result).toEqual({ stdout: "a\nb\n", stderr: "", exitCode: 4 });
    expect(await face.listFiles("none")).toEqual([]);
    await expect(face.listFiles("../..")).rejects.toMatchObject({ code: "path_confinement" });
    await face.cleanup();
  });

  test("what is not allowed, not known or not possible is refused", async () => {
    const { face } = await executor({ allow: ["echo"] });
    await expect(face.execute("ls")).rejects.toMatchObject({ code: "command_not_allowed" });
    await expect(face.execute("echo", "x" as never)).rejects.toMatchObject({ code: "invalid_argument" });
    await expect(face.execute("echo", [], { user: "x" } as never)).rejects.toMatchObject({ code: "invalid_argument" });
    await expect(face.execute("echo", [], { sudo: true })).rejects.toMatchObject({ code: "unsupported" });
    await face.cleanup();
  });

  test("a failed opening is tried again", async () => {
    let attempts = 0;
    const face = createExecutor({
      timeout: async () => 1000,
      empty: async () => undefined,
      open: () => (++attempts === 1 ? Promise.reject(new Error("first")) : openSandbox({ backend: "plain" })),
    });
    await expect(face.listFiles()).rejects.toThrow("first");
    expect(await face.listFiles()).toEqual([]);
    await face.cleanup();
  });
});

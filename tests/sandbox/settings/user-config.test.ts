import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type OpenOptions, openSandbox, withUserConfig } from "../../../src/sandbox.js";
import { setEnv } from "../../support/environment.js";
import { createScratch, type Scratch } from "../../support/scratch.js";

const NOTHING = {
  GLOVEBOX_BACKEND: undefined,
  VERCEL: undefined,
  VERCEL_OIDC_TOKEN: undefined,
  VERCEL_TOKEN: undefined,
};
let scratch: Scratch;
let restore: () => void;
beforeAll(() => {
  scratch = createScratch();
});
afterAll(() => scratch.remove());
beforeEach(() => {
  restore = setEnv({ ...NOTHING, GLOVEBOX_CONFIG: join(scratch.path, "config.yaml") });
});
afterEach(() => restore());

/** Writes the user's file. */
function configure(...lines: string[]): void {
  writeFileSync(join(scratch.path, "config.yaml"), `${lines.join("\n")}\n`, { mode: 0o600 });
}

const complete = (options: OpenOptions = {}): Promise<OpenOptions> => withUserConfig(options);

describe("a configuration file", () => {
  test("sets what neither the call nor the environment sets", async () => {
    configure("backend: docker", "image: node:20", "network: none", "limits: { memory: 512m, cpus: 2 }", "ttl: 2h");
    const all = {
      backend: "docker",
      image: "node:20",
      network: "none",
      limits: { memory: 512 << 20, cpus: 2 },
      ttl: 7_200_000,
    };
    expect(await complete()).toEqual(all);
    const given = { image: "debian:12", network: "full", limits: { cpus: 1 }, ttl: 5 } as const;
    expect(await complete(given)).toEqual({ ...all, ...given, limits: { memory: 512 << 20, cpus: 1 } });
  });

  test("loses to the environment, and the environment to the call", async () => {
    configure("backend: docker");
    process.env["GLOVEBOX_BACKEND"] = "local";
    expect((await complete()).backend).toBe("local");
    expect((await complete({ backend: "dagger" })).backend).toBe("dagger");
  });

  test("has a section for each backend, which wins over what is for all", async () => {
    configure(
      "image: node:20",
      "limits: { pids: 100, cpus: 2 }",
      "workDir: /work",
      "backends:",
      "  docker: { image: 'debian:12', limits: { pids: 50 }, workDir: /src, options: { pull: never, user: node } }",
    );
    expect(await complete({ backend: "docker", docker: { user: "root" } })).toEqual({
      backend: "docker",
      image: "debian:12",
      limits: { pids: 50, cpus: 2 },
      workDir: "/src",
      docker: { pull: "never", user: "root" },
    });
    // It uses no images.
    expect(await complete({ backend: "local" })).toEqual({
      backend: "local",
      limits: { pids: 100, cpus: 2 },
      workDir: "/work",
    });
  });

  test("has no secrets, and no options that a backend does not know", async () => {
    configure("backends: { daytona: { options: { apiKey: not-a-secret } } }");
    await expect(complete({ backend: "daytona" })).rejects.toThrow(
      /backends\.daytona\.options\.apiKey can't be in this file/,
    );
    configure("backends: { docker: { options: { pul: never } } }");
    await expect(complete({ backend: "docker" })).rejects.toMatchObject({ hint: 'did you mean "pull"?' });
  });

  test("changes nothing about a sandbox that exists", async () => {
    configure("limits: { pids: 100 }", "network: none");
    const options = { id: "0123456789abcdef" };
    expect(await complete(options)).toEqual(options);
    const named = { backend: "local", name: "mine", keep: true } as const;
    const kept = await openSandbox(named);
    await kept.teardown();
    const again = { ...named, ifExists: "reopen", keep: false } as const;
    expect(await complete(again)).toEqual(again);
    await (await openSandbox(again)).teardown();
    expect((await complete(again)).limits).toEqual({ pids: 100 });
  });

  test("is not read by openSandbox itself", async () => {
    configure("backend: docker", "nonsense: 1");
    await using sandbox = await openSandbox();
    expect(sandbox.backend).toBe("local");
  });
});

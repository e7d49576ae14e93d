import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { dagger } from "../../../src/sandbox/backends/dagger.js";
import { docker } from "../../../src/sandbox/backends/docker.js";
import { underPolicy, underTaskPolicy } from "../../../src/sandbox/lifecycle/policy.js";
import type { SandboxOptions } from "../../../src/sandbox/types.js";
import { listSandboxes, openSandbox } from "../../../src/sandbox.js";
import { setEnv } from "../../support/environment.js";
import { createScratch, type Scratch } from "../../support/scratch.js";

let scratch: Scratch;
let restore: (() => void) | undefined;
beforeAll(() => {
  scratch = createScratch();
});
afterAll(() => scratch.remove());
afterEach(() => {
  restore?.();
  restore = undefined;
});

const MIB = 1 << 20;
const open = (opts: SandboxOptions = {}): ReturnType<typeof openSandbox> => openSandbox({ backend: "local", ...opts });
const path = (): string => join(scratch.path, "policy.yaml");

/** Puts a policy in force until the end of the test. */
function decree(...lines: string[]): void {
  writeFileSync(path(), `${lines.join("\n")}\n`, { mode: 0o600 });
  restore ??= setEnv({ GLOVEBOX_POLICY: path() });
}

function forbidden(rule: string): object {
  return {
    code: "permission_denied",
    message: expect.stringContaining(`The policy ${path()} forbids it (rule ${rule}): `) as string,
    hint: expect.any(String) as string,
  };
}

describe("a new sandbox", () => {
  test.each<[string, SandboxOptions, string]>([
    ["backends: [docker]", {}, "backends"],
    ["network: none", { network: "full" }, "network"],
    ["network: none", { network: { allow: ["example.com"] } }, "network"],
    ["network: { allow: [example.com] }", { network: "full" }, "network"],
    ["network: { allow: [example.com] }", { network: { allow: ["example.com", "example.org"] } }, "network"],
    ["network: { allow: [example.com] }", { network: { allow: ["*.example.com"] } }, "network"],
    ["network: { allow: [example.com] }", { network: { allow: ["example.com:8080"] } }, "network"],
    ["isolation: required", { isolation: "none" }, "isolation"],
    ["mounts: none", { mounts: [{ source: "/etc" }] }, "mounts"],
    ["mounts: none", { baseDir: "/nonexistent" }, "mounts"],
    ["mounts: none", { repo: "/nonexistent", gitAlternates: ["/nonexistent"] }, "mounts"],
    ["mounts: { under: [/srv] }", { mounts: [{ source: "/etc" }] }, "mounts"],
    ["mounts: { under: [/srv] }", { mounts: [{ source: "/srv/../etc" }] }, "mounts"],
    ["mounts: { under: [/usr], readOnly: true }", { mounts: [{ source: "/usr", writable: true }] }, "mounts"],
    ["limits: { memory: 64m }", { limits: { memory: 65 * MIB } }, "limits.memory"],
    ["limits: { pids: { max: 50, default: 20 } }", { limits: { pids: 51 } }, "limits.pids"],
    ["ttl: 1h", { ttl: 3_600_001 }, "ttl"],
  ])("that breaks the policy is refused, and nothing is made: %s", async (rule, opts, name) => {
    decree(rule);
    await expect(open(opts)).rejects.toMatchObject(forbidden(name));
    expect(await listSandboxes()).toEqual([]);
  });

  test("that leads out of the allowed directories by a link is refused", async () => {
    const allowed = join(scratch.path, "allowed");
    mkdirSync(allowed);
    symlinkSync("/etc", join(allowed, "link"));
    decree(`mounts: { under: [${allowed}] }`);
    await expect(open({ mounts: [{ source: join(allowed, "link") }] })).rejects.toMatchObject(forbidden("mounts"));
    await using sandbox = await open({ mounts: [{ source: allowed }] });
    expect((await sandbox.exec({ argv: ["ls", allowed] })).stdout).toBe("link\n");
  });

  test("gets the limits and the ttl that it does not ask for", async () => {
    decree("limits: { pids: { max: 200, default: 60 } }", "ttl: { max: 2h, default: 1h }");
    const asked = await underPolicy(docker, { image: "node:22" });
    expect(asked).toMatchObject({ limits: { pids: 60 }, ttl: 3_600_000, network: "none" });
    expect(await underPolicy(docker, { limits: { pids: 100, memory: MIB }, ttl: 5 })).toMatchObject({
      limits: { pids: 100, memory: MIB },
      ttl: 5,
    });
  });

  test("is refused by a backend that can't enforce a limit of the policy", async () => {
    decree("limits: { disk: 1g }");
    await expect(underPolicy(docker, {})).rejects.toMatchObject(forbidden("limits.disk"));
  });

  test("gets a network that the policy allows", async () => {
    decree("network: { allow: ['*.example.com'] }");
    expect((await underPolicy(docker, {})).network).toBe("none");
    const network = { allow: ["a.example.com", "*.b.example.com"] };
    expect((await underPolicy(docker, { network })).network).toEqual(network);
    await expect(underPolicy(dagger, { network: "full" })).rejects.toMatchObject(forbidden("network"));
  });

  test.each<[string, boolean]>([
    ["node:22-slim", true],
    ["node", true],
    ["registry.example/team/tool:1", true],
    ["registry.example/team/sub/tool:1", false],
    ["registry.example/evil/node:22", false],
    ["evil.example/node:22", false],
    ["debian:12", false],
    [`sha256:${"0".repeat(64)}`, false],
  ])("of the image %s is allowed: %s", async (image, isAllowed) => {
    decree("images: ['node:*', 'registry.example/team/*']");
    const allowed = underPolicy(docker, { image });
    if (isAllowed) await expect(allowed).resolves.toMatchObject({ image });
    else await expect(allowed).rejects.toMatchObject(forbidden("images"));
  });

  test("whose image nobody knows is refused: the service's own, a snapshot's, that of a service beside it", async () => {
    decree("images: ['node:*']");
    await expect(underPolicy(docker, { snapshot: "x" })).rejects.toMatchObject(forbidden("images"));
    await expect(underPolicy(docker, {})).rejects.toMatchObject(forbidden("images"));
    const services = { db: { image: "postgres:16" } };
    await expect(underPolicy(dagger, { image: "node:22", dagger: { services } })).rejects.toMatchObject(
      forbidden("images"),
    );
  });

  test.each(["isolation: required", "network: none", "mounts: none"])(
    "can't weaken its isolation by an option of its backend under %s",
    async (rule) => {
      decree(rule);
      const unsafe = { privileged: true };
      await expect(underPolicy(docker, { docker: { unsafe } })).rejects.toMatchObject(
        forbidden(rule.split(":")[0] ?? ""),
      );
      await expect(underPolicy(docker, { docker: { unsafe: { privileged: false } } })).resolves.toBeDefined();
    },
  );
});

describe("a sandbox that exists", () => {
  test("is not reopened or forked under a policy that it breaks", async () => {
    const kept = await open({ keep: true, mounts: [{ source: "/srv" }] });
    decree("mounts: none");
    await expect(kept.fork()).rejects.toMatchObject(forbidden("mounts"));
    await kept.teardown();
    await expect(openSandbox({ id: kept.id })).rejects.toMatchObject(forbidden("mounts"));
    decree("ttl: 1h");
    await expect(openSandbox({ id: kept.id })).rejects.toMatchObject(forbidden("ttl"));
    decree("limits: { pids: 100 }");
    await expect(openSandbox({ id: kept.id })).rejects.toMatchObject(forbidden("limits.pids"));
    decree("mounts: { under: [/srv] }", "network: none", "isolation: required", "backends: [local]");
    const again = await openSandbox({ id: kept.id, keep: false });
    const fork = await again.fork();
    for (const each of [fork, again]) await each.teardown();
  });

  test("is not reopened in a directory that a policy has closed since", async () => {
    const baseDir = join(scratch.path, "base");
    mkdirSync(baseDir);
    const kept = await open({ keep: true, baseDir });
    await kept.teardown();
    decree("mounts: none");
    await expect(openSandbox({ id: kept.id })).rejects.toMatchObject(forbidden("mounts"));
    decree(`mounts: { under: [${scratch.path}] }`);
    await (await openSandbox({ id: kept.id, keep: false })).teardown();
  });
});

describe("the network of an open sandbox", () => {
  test("is opened for a while only for what the policies in force allow", async () => {
    await using sandbox = await open();
    decree("network: { allow: [example.com] }");
    await expect(sandbox.openNetwork(["example.com", "example.org"])).rejects.toMatchObject(forbidden("network"));
    await (await sandbox.openNetwork(["example.com"])).close();
    await expect(sandbox.setNetwork({ allow: ["example.org"] })).rejects.toMatchObject(forbidden("network"));
    await sandbox.setNetwork({ allow: ["example.com"] });
    decree("network: none");
    await expect(sandbox.openNetwork(["example.com"])).rejects.toMatchObject(forbidden("network"));
  });
});

describe("a container of a task", () => {
  const task = { backend: "docker", images: ["node:22"], network: "none", limits: {} } as const;

  test("gets the limits of the policy, and has no ttl to break", async () => {
    decree("limits: { memory: 1g }", "ttl: 1h");
    expect(await underTaskPolicy(task)).toEqual({ memory: 1024 * MIB });
  });

  test.each([
    ["backends: [local]", {}, "backends"],
    ["network: none", { network: "full" as const }, "network"],
    ["images: ['debian:*']", {}, "images"],
    ["images: ['**']", { images: [undefined] }, "images"],
    ["limits: { cpus: 1 }", { limits: { cpus: 2 } }, "limits.cpus"],
    ["limits: { disk: 1g }", {}, "limits.disk"],
  ])("is refused under %s", async (rule, more, name) => {
    decree(rule);
    await expect(underTaskPolicy({ ...task, ...more })).rejects.toMatchObject(forbidden(name));
  });
});

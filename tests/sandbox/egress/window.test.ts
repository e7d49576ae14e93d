import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createLocalSandbox } from "../../../src/sandbox/backends/local.js";
import { egressInternals } from "../../../src/sandbox/egress/open-egress.js";
import type { Sandbox } from "../../../src/sandbox/types.js";
import { openSandbox } from "../../../src/sandbox.js";
import { type Origin, startOrigin } from "../../support/egress/origin.js";
import { createScratch, type Scratch } from "../../support/scratch.js";

const NAMED = "named.test";
const OTHER = "other.test";

let scratch: Scratch;
let origin: Origin;

beforeAll(async () => {
  scratch = createScratch();
  origin = await startOrigin();
  egressInternals.route = { lookup: async () => ["127.0.0.1"], isReachable: (address) => address === "127.0.0.1" };
});

afterAll(() => {
  delete egressInternals.route;
  origin.close();
  scratch.remove();
});

const reach = async (sandbox: Sandbox, host: string, env: Readonly<Record<string, string>> = {}): Promise<number> =>
  (await sandbox.exec({ argv: ["curl", "-fsS", "-m", "20", `http://${host}:${origin.port}/`], env })).exitCode;
const entry = (host: string): string => `plain://${host}:${origin.port}`;

describe.each([
  ["none", "none" as const],
  ["a list of names", { allow: [] as string[] }],
])("a window of a sandbox whose network is %s", (_, network) => {
  test("lets the named hosts out until it is closed, and no others", async () => {
    await using sandbox = await createLocalSandbox({ network });
    const window = await sandbox.openNetwork([entry(NAMED)]);
    expect(await reach(sandbox, NAMED, window.env)).toBe(0);
    expect(await reach(sandbox, OTHER, window.env)).not.toBe(0);
    await window.close();
    expect(await reach(sandbox, NAMED, window.env)).not.toBe(0);
    await window.close();
    await using again = await sandbox.openNetwork([entry(OTHER)]);
    expect(await reach(sandbox, OTHER, again.env)).toBe(0);
    expect(await reach(sandbox, NAMED, again.env)).not.toBe(0);
  });

  test("cuts what is connected when it is closed", async () => {
    await using sandbox = await createLocalSandbox({ network });
    const window = await sandbox.openNetwork([entry(NAMED)]);
    const script = `exec 3<>/dev/tcp/127.0.0.1/3128; printf 'CONNECT ${NAMED}:${origin.port} HTTP/1.1\\r\\n\\r\\n' >&3
      read -r line <&3; echo "$line"; cat <&3; echo cut`;
    const child = await sandbox.spawn({ argv: ["bash", "-c", script] });
    const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
    let seen = "";
    const until = async (text: string): Promise<void> => {
      while (!seen.includes(text)) {
        const { done, value } = await reader.read();
        if (done) throw new Error(`it ended after ${JSON.stringify(seen)}`);
        seen += value;
      }
    };
    await until("200 Connection established");
    expect(seen).not.toContain("cut");
    await window.close();
    await until("cut");
    expect((await child.wait()).exitCode).toBe(0);
  });
});

describe("a window", () => {
  test("keeps what the rule of the sandbox allows, before, within and after", async () => {
    await using sandbox = await createLocalSandbox({ network: { allow: [entry(NAMED)] } });
    expect(await reach(sandbox, NAMED)).toBe(0);
    const window = await sandbox.openNetwork([entry(OTHER)]);
    expect([await reach(sandbox, NAMED), await reach(sandbox, OTHER)]).toEqual([0, 0]);
    await window.close();
    expect(await reach(sandbox, NAMED)).toBe(0);
    expect(await reach(sandbox, OTHER)).not.toBe(0);
  });

  test("cannot be opened while processes run, while another is open, or for what could never be allowed", async () => {
    await using sandbox = await createLocalSandbox({});
    await expect(sandbox.openNetwork(["localhost"])).rejects.toMatchObject({ code: "invalid_argument" });
    const child = await sandbox.spawn({ argv: ["sleep", "600"] });
    await expect(sandbox.openNetwork([entry(NAMED)])).rejects.toMatchObject({ code: "conflict" });
    await child.kill("SIGKILL");
    await child.wait();
    await using _window = await sandbox.openNetwork([entry(NAMED)]);
    await expect(sandbox.openNetwork([entry(OTHER)])).rejects.toMatchObject({ code: "conflict" });
  });

  test("is not there in a fork, nor when a kept sandbox is reopened", async () => {
    const sandbox = await createLocalSandbox({ keep: true });
    const window = await sandbox.openNetwork([entry(NAMED)]);
    expect(await reach(sandbox, NAMED, window.env)).toBe(0);
    await using fork = await sandbox.fork();
    expect(await reach(fork, NAMED, window.env)).not.toBe(0);
    await sandbox.teardown();
    await using again = await openSandbox({ backend: "local", id: sandbox.id });
    expect(await reach(again, NAMED, window.env)).not.toBe(0);
  });

  test("is unsupported without isolation: nothing could close it", async () => {
    await using sandbox = await createLocalSandbox({ isolation: "none", network: "full" });
    await expect(sandbox.openNetwork([entry(NAMED)])).rejects.toMatchObject({ code: "unsupported" });
  });
});

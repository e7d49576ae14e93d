import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { NetworkPolicy } from "../../../contracts/types.js";
import { createLocalSandbox } from "../../../src/sandbox/backends/local.js";
import { egressInternals } from "../../../src/sandbox/egress/open-egress.js";
import type { Sandbox } from "../../../src/sandbox/types.js";
import { openSandbox } from "../../../src/sandbox.js";
import { type Origin, startOrigin } from "../../support/egress/origin.js";

const ONE = "one.test";
const TWO = "two.test";
let origin: Origin;
const silent = createServer((socket) => socket.on("error", () => undefined));
const silentEntry = (host: string): string => `plain://${host}:${(silent.address() as AddressInfo).port}`;

beforeAll(async () => {
  origin = await startOrigin();
  // A web server would end a silent connection by itself.
  silent.listen(0, "127.0.0.1");
  await once(silent, "listening");
  egressInternals.route = { lookup: async () => ["127.0.0.1"], isReachable: (address) => address === "127.0.0.1" };
});

afterAll(() => {
  delete egressInternals.route;
  origin.close();
  silent.close();
});

const entry = (host: string): string => `plain://${host}:${origin.port}`;
const reaches = async (sandbox: Sandbox, host: string): Promise<boolean> =>
  (await sandbox.exec({ argv: ["curl", "-fsS", "-m", "20", `http://${host}:${origin.port}/`] })).exitCode === 0;

/** A program that keeps a connection to each host, and says which are cut. */
async function hold(
  sandbox: Sandbox,
  hosts: readonly string[],
): Promise<{ until(text: string): Promise<void>; seen(): string }> {
  const script = hosts
    .map(
      (host) =>
        `( exec 3<>/dev/tcp/127.0.0.1/3128; printf 'CONNECT ${silentEntry(host).slice(8)} HTTP/1.1\\r\\n\\r\\n' >&3
           read -r line <&3; echo "${host} open"; cat <&3; echo "${host} cut" ) &`,
    )
    .join("\n");
  const child = await sandbox.spawn({ argv: ["bash", "-c", `${script}\nwait`] });
  const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  let seen = "";
  return {
    seen: () => seen,
    async until(text) {
      while (!seen.includes(text)) {
        const { done, value } = await reader.read();
        if (done) throw new Error(`it ended after ${JSON.stringify(seen)}`);
        seen += value;
      }
      expect(seen).toContain(text);
    },
  };
}

describe("setNetwork", () => {
  test("replaces the rules of an open sandbox, for commands that start later and for those that run", async () => {
    await using sandbox = await createLocalSandbox({ network: { allow: [entry(ONE)] } });
    expect([await reaches(sandbox, ONE), await reaches(sandbox, TWO)]).toEqual([true, false]);
    await sandbox.setNetwork({ allow: [entry(TWO)] });
    expect([await reaches(sandbox, ONE), await reaches(sandbox, TWO)]).toEqual([false, true]);
    await sandbox.setNetwork("none");
    expect([await reaches(sandbox, ONE), await reaches(sandbox, TWO)]).toEqual([false, false]);
  });

  test("gives a sandbox without network a list of names, with what its commands need", async () => {
    await using sandbox = await createLocalSandbox({ network: "none", env: { NO_PROXY: "own" } });
    await using handle = await openSandbox({ id: sandbox.id });
    expect(await reaches(sandbox, ONE)).toBe(false);
    await handle.setNetwork({ allow: [entry(ONE)] });
    for (const each of [sandbox, handle])
      expect([await reaches(each, ONE), await reaches(each, TWO)]).toEqual([true, false]);
    expect((await sandbox.shell("echo $NO_PROXY")).stdout).toBe("own\n");
  });

  test("cuts the connections that the new rules don't allow, and no others", async () => {
    await using sandbox = await createLocalSandbox({ network: { allow: [silentEntry(ONE), silentEntry(TWO)] } });
    const held = await hold(sandbox, [ONE, TWO]);
    await held.until(`${ONE} open`);
    await held.until(`${TWO} open`);
    await sandbox.setNetwork({ allow: [silentEntry(TWO), entry("three.test")] });
    await held.until(`${ONE} cut`);
    expect(held.seen()).not.toContain(`${TWO} cut`);
    // A tunnel that may carry anything is not kept by an entry for TLS alone.
    await sandbox.setNetwork({ allow: [silentEntry(TWO).slice(8)] });
    await held.until(`${TWO} cut`);
  });

  test("is recorded: a kept sandbox is reopened with the new rules, and forks have them", async () => {
    const sandbox = await createLocalSandbox({ network: { allow: [entry(ONE)] }, keep: true });
    await sandbox.setNetwork({ allow: [entry(TWO)] });
    await using fork = await sandbox.fork();
    expect([await reaches(fork, ONE), await reaches(fork, TWO)]).toEqual([false, true]);
    await sandbox.teardown();
    await expect(openSandbox({ id: sandbox.id, network: { allow: [entry(ONE)] } })).rejects.toMatchObject({
      code: "invalid_argument",
    });
    await using again = await openSandbox({ id: sandbox.id, network: { allow: [entry(TWO)] }, keep: false });
    expect([await reaches(again, ONE), await reaches(again, TWO)]).toEqual([false, true]);
  });

  test("and a window exclude each other", async () => {
    await using sandbox = await createLocalSandbox({ network: { allow: [entry(ONE)] } });
    const window = await sandbox.openNetwork([entry(TWO)]);
    await expect(sandbox.setNetwork("none")).rejects.toMatchObject({ code: "conflict" });
    expect([await reaches(sandbox, ONE), await reaches(sandbox, TWO)]).toEqual([true, true]);
    await window.close();
    await sandbox.setNetwork({ allow: [] });
    expect([await reaches(sandbox, ONE), await reaches(sandbox, TWO)]).toEqual([false, false]);
  });

  test("refuses what it can't do, and changes nothing", async () => {
    await using sandbox = await createLocalSandbox({ network: { allow: [entry(ONE)] } });
    const refusals: [unknown, string][] = [
      ["full", "unsupported"],
      [{ allow: ["localhost"] }, "invalid_argument"],
      [{}, "invalid_argument"],
      [undefined, "invalid_argument"],
    ];
    for (const [network, code] of refusals) {
      await expect(sandbox.setNetwork(network as "none")).rejects.toMatchObject({ code });
    }
    expect(await reaches(sandbox, ONE)).toBe(true);
    await using open = await createLocalSandbox({ network: "full" });
    await expect(open.setNetwork("none")).rejects.toMatchObject({ code: "unsupported" });
    await using loose = await createLocalSandbox({ isolation: "none" });
    await expect(loose.setNetwork("none")).rejects.toMatchObject({ code: "unsupported" });
  });

  test("is conflict where a program has taken the port of the proxy", async () => {
    await using sandbox = await createLocalSandbox({});
    const argv = ["python3", "-u", "-m", "http.server", "3128", "--bind", "127.0.0.1"];
    await using _server = await sandbox.spawn({ argv });
    await sandbox.waitForPort(3128);
    await expect(sandbox.setNetwork({ allow: [entry(ONE)] })).rejects.toMatchObject({ code: "conflict" });
    const network: NetworkPolicy = "none";
    await using same = await openSandbox({ id: sandbox.id, network });
    expect(same.id).toBe(sandbox.id);
  });
});

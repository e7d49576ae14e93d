import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { NetworkPolicy } from "../../../../contracts/types.js";
import { readRecord } from "../../../../src/ledger/records.js";
import { createVercelSandbox } from "../../../../src/sandbox/backends/vercel.js";
import { deleteSnapshot, listSnapshots } from "../../../../src/sandbox/snapshots.js";
import type { Sandbox, SandboxOptions } from "../../../../src/sandbox/types.js";
import { removeSandbox } from "../../../../src/sandbox.js";
import { FakeVercel } from "../../../fakes/vercel/server.js";
import { type GitServer, serveGit } from "../../../support/git/server.js";
import { createRepository, createScratch, type Scratch } from "../../../support/scratch.js";

let service: FakeVercel;
let scratch: Scratch;
const opened: Sandbox[] = [];

beforeAll(async () => {
  scratch = createScratch();
  service = await FakeVercel.start();
});

afterEach(async () => {
  service.faults.clear();
  service.store.stopDelay = 0;
  await Promise.all(opened.splice(0).map((sandbox) => sandbox.teardown()));
});

afterAll(async () => {
  await service.close();
  scratch.remove();
});

async function open(opts: SandboxOptions = {}): Promise<Sandbox> {
  const sandbox = await createVercelSandbox({ ...opts, vercel: { ...service.options, ...opts.vercel } });
  opened.push(sandbox);
  return sandbox;
}

/** Machines and snapshots of one sandbox that the service still has. */
function leftOf({ id }: Sandbox): string[] {
  const snapshots = service.snapshotsOf(id).map((snapshot) => `${snapshot.method} ${snapshot.id}`);
  return [...service.census().filter((name) => name.startsWith(id)), ...snapshots];
}

describe("the time of a machine at the service", () => {
  const machineOf = ({ id }: Sandbox): { timeout: number; expiration: number | undefined } => {
    const [found] = service.store.sandboxes().filter(({ name }) => name.startsWith(id));
    if (found === undefined) throw new Error(`there is no machine of ${id}`);
    return found;
  };

  test("is not longer than the ttl, and what a kept one saves expires with it", async () => {
    const days = 3 * 86_400_000;
    expect(machineOf(await open({ ttl: 20_000 })).timeout).toBeLessThanOrEqual(30_000);
    const kept = await open({ ttl: days, keep: true });
    expect(machineOf(kept).expiration).toBeGreaterThan(days - 600_000);
    expect(machineOf(kept).expiration).toBeLessThanOrEqual(days + 10_000);
    const short = await open({ ttl: 600_000, keep: true });
    expect(machineOf(short).expiration).toBe(86_400_000);
    for (const each of [kept, short]) {
      await each.teardown();
      await removeSandbox(each.id);
    }
  });

  test("is longer than the idleTimeout, so that this process ends an idle sandbox and not the service", async () => {
    expect(machineOf(await open({ idleTimeout: 1_200_000 })).timeout).toBeGreaterThan(1_200_000);
  });

  test.each([
    ["ttl", { ttl: 10_000, vercel: { timeout: 20_000 } }],
    ["idleTimeout", { idleTimeout: 20_000, vercel: { timeout: 10_000 } }],
  ] as [string, SandboxOptions][])("%s that does not fit to vercel.timeout is refused", async (name, opts) => {
    const message = expect.stringContaining(`Option ${name}`) as string;
    await expect(open(opts)).rejects.toMatchObject({ code: "invalid_argument", message });
  });
});

describe("a snapshot of a kept sandbox", () => {
  test("is there as long as nobody deletes it, whatever becomes of the sandbox", async () => {
    const sandbox = await open({ keep: true });
    await sandbox.writeFile("file", "first");
    const first = await sandbox.snapshot();
    await sandbox.writeFile("file", "second");
    const second = await sandbox.snapshot();
    await sandbox.teardown();
    const again = await open({ id: sandbox.id, keep: false });
    expect(await again.readFile("file")).toBe("second");
    await again.restore(first);
    expect(await again.readFile("file")).toBe("first");
    await again.teardown();

    const other = await open();
    await other.restore(second);
    expect(await other.readFile("file")).toBe("second");
    expect(service.snapshotsOf(sandbox.id).map(({ method }) => method)).toEqual(["manual", "manual"]);
    await deleteSnapshot(first);
    await deleteSnapshot(second);
    expect(leftOf(sandbox)).toEqual([]);
  });

  test("outlives a sandbox that could not go on after it, and was reopened from it", async () => {
    const sandbox = await open({ keep: true });
    await sandbox.writeFile("file", "saved");
    service.faults.add(/^POST \/v3\/sandboxes$/, { status: 402, code: "payment_required", message: "no more" });
    await expect(sandbox.snapshot()).rejects.toMatchObject({ code: "backend_lost" });
    const id = (await listSnapshots()).find(({ sandboxId }) => sandboxId === sandbox.id)?.id ?? "";
    await sandbox.teardown();
    // The service keeps the last snapshot of a machine only: one more of this machine would take the place of the first.
    for (const content of ["saved", "again"]) {
      const again = await open({ id: sandbox.id });
      expect(await again.readFile("file")).toBe(content);
      await again.writeFile("file", "again");
      await again.teardown();
    }
    const other = await open();
    await other.restore(id);
    expect(await other.readFile("file")).toBe("saved");
    await deleteSnapshot(id);
    await removeSandbox(sandbox.id);
    expect(leftOf(sandbox)).toEqual([]);
  });
});

describe("snapshots that the service takes by itself", () => {
  test("one at most is there while a kept sandbox is stopped, and none when it is restored", async () => {
    const sandbox = await open({ keep: true });
    await sandbox.writeFile("file", "kept");
    const id = await sandbox.snapshot();
    for (let round = 0; round < 2; round++) {
      await sandbox.restore(id);
      expect(service.snapshotsOf(sandbox.id).map(({ method }) => method)).toEqual(["manual"]);
    }
    await sandbox.teardown();
    expect(service.snapshotsOf(sandbox.id).map(({ method }) => method)).toEqual(["manual", "automatic"]);
    await deleteSnapshot(id);
    await removeSandbox(sandbox.id);
    expect(leftOf(sandbox)).toEqual([]);
  });

  test.each(["running", "stopped"])("a kept sandbox that is removed while it is %s leaves none", async (state) => {
    const sandbox = await open({ keep: true });
    await sandbox.writeFile("file", "kept");
    await sandbox.teardown();
    const again = await open({ id: sandbox.id, keep: state === "stopped" });
    if (state === "stopped") await service.stopMachine(sandbox.id);
    await again.teardown();
    if (state === "stopped") await removeSandbox(sandbox.id);
    expect(leftOf(sandbox)).toEqual([]);
    expect(await readRecord(sandbox.id)).toBeUndefined();
  });

  test("a machine that is on its way to its end is waited for, or its last snapshot would stay", async () => {
    const sandbox = await open({ keep: true });
    await sandbox.writeFile("file", "kept");
    await sandbox.teardown();
    const again = await open({ id: sandbox.id, keep: false });
    service.store.stopDelay = 1_500;
    const stopping = service.stopMachine(sandbox.id);
    await again.teardown();
    await stopping;
    expect(leftOf(sandbox)).toEqual([]);
  });

  test("a fork of a kept sandbox leaves none", async () => {
    const sandbox = await open({ keep: true });
    const fork = await sandbox.fork();
    opened.push(fork);
    expect(service.snapshotsOf(sandbox.id)).toEqual([]);
    await sandbox.teardown();
    await removeSandbox(sandbox.id);
    expect(leftOf(sandbox)).toEqual([]);
  });
});

describe("the network of a kept sandbox", () => {
  const token = "ghp_repository_token_kept";
  const repo = "https://kept.example/project/.git";
  let remote: GitServer;
  let outside: Server;

  beforeAll(async () => {
    createRepository(join(scratch.path, "remotes", "project"));
    remote = await serveGit(join(scratch.path, "remotes"), token);
    service.hosts.set("https://kept.example", remote.origin);
    outside = createServer((_, response) => response.end("outside")).listen(0, "127.0.0.1");
  });
  afterAll(async () => {
    outside.close();
    await remote.close();
  });

  /** Whether a command inside can connect to a server of this host. */
  async function canReach(sandbox: Sandbox): Promise<boolean> {
    const { port } = outside.address() as AddressInfo;
    const program = `IO::Socket::INET->new(PeerAddr=>"127.0.0.1",PeerPort=>${port},Timeout=>3) or exit 9`;
    const { exitCode } = await sandbox.exec({ argv: ["perl", "-MIO::Socket", "-e", program] });
    return exitCode === 0;
  }

  test.each([
    ["none", { mode: "deny-all" }],
    [{ allow: ["example.com"] }, { allow: ["example.com"] }],
  ] as [NetworkPolicy, object][])(
    "with a repository that the service clones is %j again when it is reopened",
    async (network, policy) => {
      const sandbox = await open({ repo, githubToken: token, network, keep: true });
      expect(await canReach(sandbox)).toBe(false);
      expect(service.policiesOf(sandbox.id)).toEqual({ session: policy, sandbox: policy });
      await sandbox.teardown();
      const again = await open({ id: sandbox.id, keep: false, githubToken: token });
      expect(await canReach(again)).toBe(false);
      expect(service.policiesOf(sandbox.id)).toEqual({ session: policy, sandbox: policy });
    },
  );

  test("is set anew when the service resumes it with another one, as it does with sandboxes of older versions", async () => {
    const sandbox = await open({ keep: true });
    await sandbox.teardown();
    const [machine] = service.store.sandboxes().filter(({ name }) => name.startsWith(sandbox.id));
    if (machine !== undefined) machine.policy = { mode: "allow-all" };
    const again = await open({ id: sandbox.id, keep: false });
    expect(await canReach(again)).toBe(false);
    expect(service.policiesOf(sandbox.id).sandbox).toEqual({ mode: "deny-all" });
  });

  test("that is full stays full", async () => {
    const sandbox = await open({ keep: true, network: "full" });
    await sandbox.teardown();
    const before = service.requests.length;
    const again = await open({ id: sandbox.id, keep: false });
    expect(await canReach(again)).toBe(true);
    // Nothing had to be set for it.
    expect(service.requests.slice(before).filter(({ line }) => /^PATCH|network-policy/.test(line))).toEqual([]);
  });
});

test("what restricts a kept sandbox still does when it is opened again", async () => {
  const sandbox = await open({ keep: true, allow: ["sh", "echo"], maxOutput: 8, network: "none" });
  await sandbox.teardown();
  await expect(open({ id: sandbox.id, network: "full" })).rejects.toMatchObject({ code: "invalid_argument" });
  const again = await open({ id: sandbox.id, keep: false });
  await expect(again.exec({ argv: ["ls"] })).rejects.toMatchObject({ code: "command_not_allowed" });
  const { truncated } = await again.exec({ argv: ["echo", "more than eight bytes"] });
  expect(truncated.stdout).toBe(true);
});

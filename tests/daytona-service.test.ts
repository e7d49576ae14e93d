import { Daytona, type Sandbox as RemoteSandbox } from "@daytona/sdk";
import { describe, expect, test } from "vitest";
import { type FakeDaytona, startFakeDaytona } from "./fakes/daytona-server.js";
import { ownService } from "./support/daytona-service.js";

/** A machine at a service of its own, by the SDK alone. */
interface Place extends AsyncDisposable {
  readonly service: FakeDaytona;
  readonly remote: RemoteSandbox;
}

async function ownMachine(): Promise<Place> {
  const service = await startFakeDaytona();
  const client = new Daytona({ apiUrl: service.apiUrl, apiKey: service.apiKey, useDeprecatedPolling: true });
  const remote = await client.create({ snapshot: "daytona-medium" });
  const close = async (): Promise<void> => {
    await client[Symbol.asyncDispose]();
    await service.close();
  };
  return { service, remote, [Symbol.asyncDispose]: close };
}

async function start(remote: RemoteSandbox, command: string): Promise<string> {
  await remote.process.createSession("s").catch(() => undefined);
  return (await remote.process.executeSessionCommand("s", { command, runAsync: true })).cmdId ?? "";
}

/** Waits for the exit code of a command, or for the shell to have gone with it. */
async function codeOf(remote: RemoteSandbox, id: string): Promise<number | "never"> {
  for (let i = 0; i < 400; i++) {
    const { exitCode } = await remote.process.getSessionCommand("s", id);
    if (typeof exitCode === "number") return exitCode;
    const isGone = await remote.process.sendSessionCommandInput("s", id, "").then(
      () => false,
      (error: { statusCode?: number }) => error.statusCode === 410,
    );
    if (isGone) return (await remote.process.getSessionCommand("s", id)).exitCode ?? "never";
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error("the command neither ended nor died");
}

describe.concurrent("the stand-in has the habits of the service, and each can be switched off:", () => {
  test("a command is read into its session's shell", async () => {
    await using there = await ownMachine();
    expect(await codeOf(there.remote, await start(there.remote, "exit 3"))).toBe("never");
    const next = there.remote.process.executeSessionCommand("s", { command: "true" });
    await expect(next).rejects.toMatchObject({ statusCode: 500, message: expect.stringContaining("broken pipe") });
    there.service.habits.sourcesCommands = false;
    await there.remote.process.deleteSession("s");
    expect(await codeOf(there.remote, await start(there.remote, "exit 3"))).toBe(3);
  });

  test("a log gets line ends and loses bytes", async () => {
    await using there = await ownMachine();
    const command = "printf 'a\\000\\377'";
    const said = async (): Promise<string | undefined> => {
      const id = await start(there.remote, command);
      await codeOf(there.remote, id);
      return (await there.remote.process.getSessionCommandLogs("s", id)).stdout;
    };
    expect(await said()).toBe("a\ufffd\n");
    there.service.habits.changesOutput = false;
    expect(await said()).toBe("a\0\ufffd");
  });

  test.each([false, true])("a log that closes early seems whole (rudely: %s)", async (followCutRudely) => {
    await using there = await ownMachine();
    Object.assign(there.service.habits, { followCutAfter: 10, followCutRudely });
    const id = await start(there.remote, "echo 0123456789");
    let heard = "";
    const hear = (text: string): void => {
      heard += text;
    };
    await there.remote.process.getSessionCommandLogs("s", id, hear, hear);
    expect(heard).not.toContain("789");
    expect((await there.remote.process.getSessionCommandLogs("s", id)).stdout).toBe("0123456789\n");
  });

  test("a checkout that is refused has moved HEAD", async () => {
    await using there = await ownMachine();
    const { remote, service } = there;
    await remote.process.executeCommand(
      "git init -q -b main r && cd r && git -c user.name=a -c user.email=b commit -q --allow-empty -m x && git branch other && touch new",
      ...([undefined, undefined, 20] as const),
    );
    const dirty = { statusCode: 409 };
    service.habits.movesHeadWhenDirty = false;
    await expect(remote.git.checkoutBranch("r", "other")).rejects.toMatchObject(dirty);
    expect((await remote.git.status("r")).currentBranch).toBe("main");
    service.habits.movesHeadWhenDirty = true;
    await expect(remote.git.checkoutBranch("r", "other")).rejects.toMatchObject(dirty);
    expect((await remote.git.status("r")).currentBranch).toBe("other");
  });

  test("a stopped machine blames the caller; a deadline is a 408; too many requests have an odd header", async () => {
    await using there = await ownMachine();
    const { remote, service } = there;
    const late = remote.process.executeCommand("echo lost; sleep 30", undefined, undefined, 1);
    await expect(late).rejects.toMatchObject({ statusCode: 408 });
    const headers = { "Retry-After-authenticated": "7" };
    service.habits.faults = [{ match: /work-dir/, action: { status: 429, headers, body: { message: "slow down" } } }];
    const busy = { statusCode: 429, headers: expect.objectContaining({ "retry-after-authenticated": "7" }) };
    await expect(remote.getWorkDir()).rejects.toMatchObject(busy);
    await remote.stop();
    await expect(remote.getWorkDir()).rejects.toMatchObject({ statusCode: 400 });
    service.habits.blamesTheCaller = false;
    await expect(remote.getWorkDir()).rejects.toMatchObject({ statusCode: 409 });
  });

  test("without them the backend is the same", async () => {
    await using there = await ownService();
    const good = { sourcesCommands: false, changesOutput: false, movesHeadWhenDirty: false, blamesTheCaller: false };
    Object.assign(there.service.habits, { ...good, refuseEmptyCommits: false });
    await using sandbox = await there.open();
    const { raw, exitCode } = await sandbox.shell("printf 'a\\000\\377'; exit 3", { raw: true });
    expect([exitCode, [...(raw?.stdout ?? [])]]).toEqual([3, [97, 0, 255]]);
  });
});

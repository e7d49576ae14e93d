import { Daytona, type Sandbox as RemoteSandbox } from "@daytona/sdk";
import { describe, expect, test } from "vitest";
import { type FakeDaytona, startFakeDaytona } from "../../../fakes/daytona/server.js";
import { ownService } from "../../../support/daytona/service.js";

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
  for (let i = 0; i < 3000; i++) {
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

describe.concurrent("the stand-in is no kinder than the service:", () => {
  const ask = async (
    there: Place,
    line: string,
    body?: unknown,
    more: Record<string, string> = {},
  ): Promise<number> => {
    const [method = "", path = ""] = line.split(" ");
    const { apiUrl, apiKey } = there.service;
    const answer = await fetch(`${path.startsWith("/toolbox") ? new URL(apiUrl).origin : apiUrl}${path}`, {
      method,
      headers: {
        Authorization: `Bearer ${apiKey}`,
        ...(body !== undefined && { "Content-Type": "application/json" }),
        ...more,
      },
      ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    await answer.arrayBuffer();
    return answer.status;
  };

  test.each<[string, string, unknown, number]>([
    ["a field that the API does not have", "POST /sandbox", { snapshot: "daytona-small", cpus: 1 }, 400],
    ["a label that is no text", "POST /sandbox", { labels: { a: 1 } }, 400],
    ["an interval below the least", "POST /sandbox", { autoDeleteInterval: -2 }, 400],
    ["an interval in parts of minutes", "POST /sandbox", { autoStopInterval: 0.5 }, 400],
    ["a block that is none", "POST /sandbox", { networkAllowList: "10.0.0.1" }, 400],
    ["a domain with a port", "POST /sandbox", { domainAllowList: "example.org:443" }, 400],
    ["a size without an image", "POST /sandbox", { cpu: 2 }, 400],
    ["a snapshot and an image", "POST /sandbox", { snapshot: "daytona-small", buildInfo: {} }, 400],
    ["a body that is no JSON", "POST /sandbox", "{", 400],
    ["a list of nothing", "GET /sandbox?limit=0", undefined, 400],
    ["a list that is too long", "GET /sandbox?limit=201", undefined, 400],
    ["labels that are no JSON", "GET /sandbox?labels=x", undefined, 400],
    ["a cursor of another list", "GET /sandbox?cursor=7", undefined, 400],
    ["another method", "PATCH /sandbox", {}, 404],
    ["a sandbox that is not there", "GET /sandbox/nobody", undefined, 404],
    ["a start of what runs", "POST /sandbox/ID/start", undefined, 400],
    ["a stop by another method", "GET /sandbox/ID/stop", undefined, 404],
    ["an archive of what runs", "POST /sandbox/ID/archive", undefined, 400],
    ["a fork of a container", "POST /sandbox/ID/fork", { name: "x" }, 422],
    ["labels without labels", "PUT /sandbox/ID/labels", {}, 400],
    ["a snapshot without a name", "POST /sandbox/ID/snapshot", {}, 400],
    ["an interval that is no number", "POST /sandbox/ID/autostop/x", undefined, 400],
    ["a port that is none", "GET /sandbox/ID/ports/70000/signed-preview-url", undefined, 400],
    ["an address for ever", "GET /sandbox/ID/ports/80/signed-preview-url?expiresInSeconds=999999", undefined, 400],
    ["a snapshot of nothing", "POST /snapshots", { name: "x" }, 400],
    ["a snapshot that is not there", "GET /snapshots/nothing", undefined, 404],
    ["a session without a name", "POST /toolbox/ID/process/session", {}, 400],
    ["a command of nothing", "POST /toolbox/ID/process/execute", { command: "" }, 400],
    ["a variable that is none", "POST /toolbox/ID/process/execute", { command: "true", envs: { "a-b": "" } }, 400],
    ["a session that is not there", "POST /toolbox/ID/process/session/none/exec", { command: "true" }, 404],
    ["a folder without a mode", "POST /toolbox/ID/files/folder?path=x", undefined, 400],
    ["a folder without a path", "POST /toolbox/ID/files/folder?mode=755", undefined, 400],
    ["a file that is not there", "GET /toolbox/ID/files/info?path=none", undefined, 404],
    ["a download of nothing", "POST /toolbox/ID/files/bulk-download", { paths: [] }, 400],
    ["an upload that is no form", "POST /toolbox/ID/files/bulk-upload", {}, 400],
    ["a sandbox of nobody", "GET /toolbox/nobody/work-dir", undefined, 404],
  ])("%s", async (_what, line, body, status) => {
    await using there = await ownMachine();
    expect(await ask(there, line.replace("ID", there.remote.id), body)).toBe(status);
  });

  test("nothing is answered without the key, and no events are told", async () => {
    await using there = await ownMachine();
    const { id } = there.remote;
    for (const line of ["GET /sandbox", `GET /sandbox/${id}`, "GET /snapshots/x", `GET /toolbox/${id}/work-dir`]) {
      expect([line, await ask(there, line, undefined, { Authorization: "Bearer wrong" })]).toEqual([line, 401]);
    }
  });

  test("one change of a state at a time", async () => {
    await using there = await ownMachine();
    const { remote, service } = there;
    service.habits.transitMs = 3_000;
    expect(await ask(there, `POST /sandbox/${remote.id}/stop`)).toBe(200);
    for (const verb of ["start", "stop", "resize", "snapshot"]) {
      const body = { resize: {}, snapshot: { name: "x" } }[verb];
      expect([verb, await ask(there, `POST /sandbox/${remote.id}/${verb}`, body)]).toEqual([verb, 409]);
    }
    expect(await ask(there, `DELETE /sandbox/${remote.id}`)).toBe(409);
    expect(await ask(there, `GET /toolbox/${remote.id}/work-dir`)).toBe(502);
    await remote.waitUntilStopped();
    expect(await ask(there, `DELETE /sandbox/${remote.id}`)).toBe(200);
  });

  test("labels are replaced, activity answers nothing, a page leads to the next", async () => {
    await using there = await ownMachine();
    const { remote, service } = there;
    await remote.setLabels({ a: "1" });
    expect(await remote.setLabels({ b: "2" })).toEqual({ b: "2" });
    await remote.refreshActivity();
    const client = new Daytona({ apiUrl: service.apiUrl, apiKey: service.apiKey, useDeprecatedPolling: true });
    await client.create({ snapshot: "daytona-small", labels: { b: "2" } });
    const names: string[] = [];
    for await (const { name } of client.list({ labels: { b: "2" }, limit: 1 })) names.push(name);
    expect(new Set(names).size).toBe(2);
    await client[Symbol.asyncDispose]();
  });

  test("an address ends with its time, and one that is not signed wants its token", async ({ expect }) => {
    await using there = await ownMachine();
    const { remote } = there;
    const status = async (url: string, headers: Record<string, string> = {}): Promise<number> =>
      (await fetch(url, { headers })).status;
    const signed = await remote.getSignedPreviewUrl(1, 1);
    expect(await status(signed.url)).toBe(502);
    const plain = await remote.getPreviewLink(1);
    expect(await status(plain.url)).toBe(401);
    expect(await status(plain.url, { "x-daytona-preview-token": plain.token })).toBe(502);
    await expect.poll(() => status(signed.url)).toBe(401);
  });

  test("a machine that nobody uses is stopped, whatever runs on it", async ({ expect }) => {
    await using there = await ownMachine();
    const { remote, service } = there;
    await start(remote, "sleep 60");
    service.habits.minuteMs = 10;
    await expect.poll(() => service.entry().state).toBe("stopped");
    await expect(remote.getWorkDir()).rejects.toMatchObject({ statusCode: 400 });
  });
});

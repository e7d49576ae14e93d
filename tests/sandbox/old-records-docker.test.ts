import { execFileSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Sandbox, SandboxOptions } from "../../src/sandbox/types.js";
import { deleteSnapshot, removeSandbox } from "../../src/sandbox.js";
import { describeUnless } from "../support/describe-unless.js";
import { BUSYBOX, useEngine, whyNoDocker } from "../support/docker/engine.js";
import { placeOf01 } from "../support/old-home.js";
import {
  keepOldFiles,
  killOwner,
  liveOn,
  MAKING,
  makeKept,
  putOldFiles,
  reapOld,
  useOldRecords,
  valuesOf,
} from "../support/old-records.js";
import { SET_UP_LIMIT } from "../support/run/set-up-limit.js";
import { createRepository, createScratch, type Scratch } from "../support/scratch.js";

const root = fileURLToPath(new URL("../..", import.meta.url));

let scratch: Scratch;
let host: string;
let options: SandboxOptions;

interface Inspected {
  Image: string;
  Config: { Hostname: string };
  HostConfig: { PidsLimit: number; Memory: number; NetworkMode: string; Mounts: { Source: string; Target: string }[] };
}

/** What an engine adds to what it is asked for. */
const OF_ENGINE = [
  ...["CgroupnsMode", "ConsoleSize", "MaskedPaths", "ReadonlyPaths", "RestartPolicy", "Runtime", "ShmSize"],
];

/** Asks the engine itself. */
async function call<T>(method: string, path: string, body?: object | Buffer): Promise<T> {
  const type = Buffer.isBuffer(body) ? "application/x-tar" : "application/json";
  const content = body === undefined || Buffer.isBuffer(body) ? body : JSON.stringify(body);
  const answer = await new Promise<{ status: number; text: string }>((resolve, reject) => {
    const asked = request({
      socketPath: host.slice("unix://".length),
      method,
      path,
      headers: { "Content-Type": type },
    });
    asked.on("error", reject);
    asked.on("response", (response) => {
      text(response).then((said) => resolve({ status: response.statusCode ?? 0, text: said }), reject);
    });
    asked.end(content);
  });
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`);
  return (answer.text === "" ? undefined : JSON.parse(answer.text)) as T;
}

/** The containers whose names have the id of a sandbox, as the engine has them. */
async function containersOf(id: string): Promise<Inspected[]> {
  const filters = encodeURIComponent(JSON.stringify({ name: [id] }));
  const found = await call<{ Id: string }[]>("GET", `/containers/json?all=true&filters=${filters}`);
  return await Promise.all(found.map(({ Id }) => call<Inspected>("GET", `/containers/${Id}/json`)));
}

/** What stands in records of version 0.1 that is not the same everywhere. */
async function valuesHere(): Promise<Record<string, string>> {
  const { Id } = await call<{ Id: string }>("GET", `/images/${BUSYBOX}/json`);
  const mark = createHash("sha256").update(`${placeOf01().HOST} ${scratch.home}`).digest("hex").slice(0, 16);
  return { IMAGE: Id, ENGINE: host, SHARED: join(scratch.path, "shared"), MARK: mark };
}

async function expectWalls(sandbox: Sandbox): Promise<void> {
  const all = await containersOf(sandbox.id);
  expect(all).toHaveLength(1);
  expect(all[0]?.HostConfig).toMatchObject({ PidsLimit: 40, Memory: 256 * 1024 ** 2, NetworkMode: "none" });
  expect((await sandbox.shell("id -u; hostname; cat /shared/note")).stdout).toBe("1000\nold-box\nfrom the host\n");
  expect((await sandbox.shell("echo x > /shared/note")).exitCode).not.toBe(0);
  expect(await askProxy(sandbox, "forbidden.invalid:443")).toMatch(/^HTTP\/1\.1 403 /);
  // It may be asked for; only that there is no such host.
  expect(await askProxy(sandbox, "allowed.invalid:443")).toMatch(/^HTTP\/1\.1 50\d /);
}

/** What the proxy of a sandbox answers when it is asked for a way to a host. */
async function askProxy(sandbox: Sandbox, name: string): Promise<string> {
  const { hostname, port } = new URL((await sandbox.shell('echo "$HTTPS_PROXY"')).stdout.trim());
  const head = `CONNECT ${name} HTTP/1.1\\r\\nHost: ${name}\\r\\n\\r\\n`;
  return (await sandbox.shell(`printf '${head}' | nc ${hostname} ${port} | head -n 1`)).stdout;
}

/** Puts files into the work directory of a container, as its user has them. */
async function putFiles(container: string, files: Record<string, string>): Promise<void> {
  const folder = join(scratch.path, `files-${randomBytes(4).toString("hex")}`);
  mkdirSync(join(folder, "place", "ignored"), { recursive: true });
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, "place", name), content);
  const tar = execFileSync("tar", [
    "--owner=1000",
    "--group=1000",
    "--numeric-owner",
    "-C",
    folder,
    "-cf",
    "-",
    "place",
  ]);
  await call("PUT", `/containers/${container}/archive?path=/`, tar);
}

/** Puts the guest of this version where version 0.1 had it, or lays out what this version has instead. */
function installPackage(isOld: boolean): string {
  const place = join(scratch.path, "package");
  rmSync(place, { recursive: true, force: true });
  const { files } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { files: string[] };
  const folders = files.filter((name) => name.endsWith("/bin"));
  const target = join(place, "agent", "bin", `linux-${process.arch}`, "glovebox-agent");
  if (!isOld) for (const name of folders) cpSync(join(root, name), join(place, name), { recursive: true });
  else {
    const own = join(root, folders[0] ?? "", `linux-${process.arch}`);
    cpSync(join(own, readdirSync(own)[0] ?? ""), target);
  }
  return target;
}

describeUnless(whyNoDocker(BUSYBOX), "a kept sandbox of version 0.1 in Docker", {}, () => {
  beforeAll(async () => {
    scratch = createScratch();
    mkdirSync(join(scratch.path, "shared"));
    writeFileSync(join(scratch.path, "shared", "note"), "from the host\n");
    host = await useEngine(BUSYBOX);
    options = {
      image: BUSYBOX,
      limits: { pids: 40, memory: 256 * 1024 ** 2 },
      network: { allow: ["allowed.invalid:443"] },
      mounts: [{ source: join(scratch.path, "shared"), target: "/shared" }],
      docker: { user: "1000:1000", workDir: "/place", hostname: "old-box", unsafe: { mounts: true } },
    };
  }, SET_UP_LIMIT);
  afterAll(() => scratch?.remove());

  test("docker: opens in the very container that 0.1 made, once its package was replaced", async () => {
    const values = await valuesHere();
    if (MAKING) await makeFixture(values);
    const id = randomBytes(8).toString("hex");
    const snapshot = `docker-${randomBytes(8).toString("hex")}`;
    const agent = installPackage(true);
    putOldFiles("docker", scratch.home, { ...values, ID: id, SNAPSHOT: snapshot, AGENT: agent });
    const path = join(scratch.home, "sandboxes", id, "container.json");
    const made = JSON.parse(readFileSync(path, "utf8")) as object;
    rmSync(path);
    const name = `glovebox-${id}`;
    await call("POST", `/containers/create?name=${name}`, made);
    await putFiles(name, { "kept.txt": "saved\n", "ignored/x.txt": "ignored\n" });
    await call("POST", `/commit?container=${name}&repo=glovebox/snapshot&tag=${snapshot}`, {});
    await putFiles(name, { "kept.txt": "latest\n" });
    installPackage(false);
    await liveOn("docker", { id, snapshot, workDir: "/place" }, {}, expectWalls);
    expect(await containersOf(id)).toEqual([]);
    await expect(call("GET", `/images/glovebox/snapshot:${snapshot}/json`)).rejects.toThrow("404");
  });

  test("docker-repository: opens with its files, and is compared with its repository", async () => {
    const repo = createRepository(join(scratch.path, "repo"));
    const kept = await makeKept("docker", { ...options, repo, branch: "main" });
    useOldRecords("docker-repository", kept, { ...(await valuesHere()), ...valuesOf(repo) });
    await liveOn("docker", kept, {}, async (sandbox) => {
      await expectWalls(sandbox);
      expect((await sandbox.changes()).files).toEqual([{ path: "kept.txt", status: "added" }]);
    });
    expect(await containersOf(kept.id)).toEqual([]);
  });

  test("docker-repository: is reaped with its network and images when its process was killed", async () => {
    const repo = createRepository(join(scratch.path, "killed"));
    const kept = await makeKept("docker", { ...options, repo, branch: "main" });
    useOldRecords("docker-repository", kept, { ...(await valuesHere()), ...valuesOf(repo) });
    const [network, image] = [`glovebox-${kept.id}`, `glovebox/fork:${kept.id}`];
    await call("POST", "/networks/create", { Name: network, Internal: true });
    await call("POST", `/images/${BUSYBOX}/tag?repo=glovebox/fork&tag=${kept.id}`);
    const engine = { host };
    killOwner(kept.id, [
      { kind: "network", name: network, engine },
      { kind: "image", name: image, engine },
    ]);
    await reapOld("docker", kept);
    expect(await containersOf(kept.id)).toEqual([]);
    for (const path of [
      `/networks/${network}`,
      `/images/${image}/json`,
      `/images/glovebox/snapshot:${kept.snapshot}/json`,
    ]) {
      await expect(call("GET", path), path).rejects.toThrow("404");
    }
  });

  /** What 0.1 writes down, and how it has the engine make a container. */
  async function makeFixture(values: Record<string, string>): Promise<void> {
    const { id, snapshot } = await makeKept("docker", options);
    const [found] = (await containersOf(id)) as (Inspected & { Config: object; HostConfig: object })[];
    const asked = (value: object): object =>
      Object.fromEntries(
        Object.entries(value).filter(([key, each]) => !OF_ENGINE.includes(key) && each && String(each) !== ""),
      );
    const { Config = {}, HostConfig = {} } = found ?? {};
    const body = { ...asked(Config), HostConfig: asked(HostConfig) };
    writeFileSync(join(scratch.home, "sandboxes", id, "container.json"), JSON.stringify(body, undefined, 2));
    const paths = ["record.json", "container.json"].map((name) => `sandboxes/${id}/${name}`);
    const agent = found?.HostConfig.Mounts.find(({ Target }) => Target === "/.glovebox/agent")?.Source ?? "";
    const all = { ...values, ID: id, SNAPSHOT: snapshot, AGENT: agent };
    keepOldFiles("docker", scratch.home, [...paths, `snapshots/${snapshot}.json`], all);
    await deleteSnapshot(snapshot);
    await removeSandbox(id);
  }
});

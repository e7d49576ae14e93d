import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import type { Sandbox, SandboxOptions } from "../../src/sandbox/types.js";
import { deleteSnapshot, listSandboxes, listSnapshots, openSandbox, reap, removeSandbox } from "../../src/sandbox.js";
import { placeOf01 } from "./old-home.js";
import { git } from "./scratch.js";

const FOLDER = fileURLToPath(new URL("../fixtures/home-0.1/records/", import.meta.url));

/** Whether the fixture is being made, by version 0.1. */
export const MAKING: boolean = process.env["MAKE_OLD_RECORDS"] === "1";

/** What stands for a text in the fixture, such as `@ID@`, and the text. */
export type Values = Readonly<Record<string, string>>;
type Files = Record<string, { text: string } | { base64: string }>;

/** Takes files of a home into the fixture of this name, with names in the place of all that differs from run to run. */
export function keepOldFiles(name: string, home: string, paths: readonly string[], values: Values): void {
  const known = Object.entries({ ...placeOf01(), HOME: home, ...values }).sort(([, a], [, b]) => b.length - a.length);
  const strip = (text: string): string =>
    known.reduce((left, [key, value]) => (value === "" ? left : left.replaceAll(value, `@${key}@`)), text);
  const files: Files = {};
  for (const path of paths) {
    const bytes = readFileSync(join(home, path));
    const text = bytes.toString("utf8");
    const isText = Buffer.from(text).equals(bytes) && !text.includes("\0");
    files[strip(path)] = isText ? { text: strip(text) } : { base64: bytes.toString("base64") };
  }
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(join(FOLDER, `${name}.json`), `${JSON.stringify(files, undefined, 2)}\n`);
}

/** Puts the files that version 0.1 wrote into a home; gives their paths. */
export function putOldFiles(name: string, home: string, values: Values): string[] {
  const known = Object.entries({ ...placeOf01(), HOME: home, ...values });
  const fill = (text: string): string => known.reduce((left, [key, value]) => left.replaceAll(`@${key}@`, value), text);
  const files = JSON.parse(readFileSync(join(FOLDER, `${name}.json`), "utf8")) as Files;
  return Object.entries(files).map(([path, file]) => {
    const at = join(home, fill(path));
    if (!existsSync(dirname(at))) mkdirSync(dirname(at), { recursive: true, mode: 0o700 });
    const content = "text" in file ? fill(file.text) : Buffer.from(file.base64, "base64");
    if (typeof content === "string" && /@[A-Z]+@/.test(content)) throw new Error(`${at}: ${content} is not filled`);
    writeFileSync(at, content, { mode: 0o600 });
    return fill(path);
  });
}

/** The one that is in use: the service of Daytona has its own. */
export const home = (): string => process.env["GLOVEBOX_HOME"] ?? "";

const RESTRICTED: SandboxOptions = { allow: ["/bin/sh", "cat", "git"], maxOutput: 64, operationTimeout: 60_000 };

/** A kept sandbox, closed, with a snapshot. */
export interface Kept {
  readonly id: string;
  readonly snapshot: string;
  readonly workDir: string;
}

/** Makes one, by this version. */
export async function makeKept(backend: string, options: SandboxOptions): Promise<Kept> {
  const sandbox = await openSandbox({ backend, ...RESTRICTED, ...options, keep: true });
  await sandbox.writeFiles({ "kept.txt": "saved\n", "ignored/x.txt": "ignored\n" });
  const snapshot = await sandbox.snapshot();
  await sandbox.writeFile("kept.txt", "latest\n");
  const { id, workDir } = sandbox;
  await sandbox.teardown();
  return { id, snapshot, workDir };
}

/** Gives a kept sandbox and its snapshot the records of version 0.1. */
export function useOldRecords(name: string, { id, snapshot, workDir }: Kept, values: Values): void {
  const all = { ID: id, SNAPSHOT: snapshot, WORKDIR: workDir, ...values };
  const paths = [`sandboxes/${id}/record.json`, `snapshots/${snapshot}.json`];
  if (MAKING) keepOldFiles(name, home(), paths, all);
  expect(putOldFiles(name, home(), all)).toEqual(paths);
}

/** Makes of a kept sandbox of 0.1 one whose process was killed: its record says `creating`, and the file beside it that it is ready. */
export function killOwner(id: string, more: readonly object[] = []): void {
  const folder = join(home(), "sandboxes", id);
  const { BOOT: bootId, PIDNS: pidNs, HOST: host } = placeOf01();
  const { reopen: _, ...record } = JSON.parse(readFileSync(join(folder, "record.json"), "utf8")) as {
    reopen: unknown;
    resources: readonly object[];
  };
  // No process ever has such a number.
  const owner = { bootId, pidNs, host, pid: 2 ** 31 - 1, startTime: "1" };
  const left = { ...record, state: "creating", owner, resources: [...record.resources, ...more] };
  writeFileSync(join(folder, "record.json"), JSON.stringify(left));
  writeFileSync(join(folder, "ready"), "");
}

/** Reaps what such a process left, with the snapshot that it had finished. */
export async function reapOld(backend: string, { id, snapshot }: Kept): Promise<void> {
  expect(await listSandboxes()).toMatchObject([{ id, backend, state: "ready", alive: false }]);
  expect(await reap({ backend })).toMatchObject({ removed: [id], kept: [], failed: [] });
  expect(await listSandboxes()).toEqual([]);
  expect(await listSnapshots()).toMatchObject([{ id: snapshot }]);
  await deleteSnapshot(snapshot);
}

/** What every backend restores of the options of a kept sandbox. */
async function expectRestricted(sandbox: Sandbox): Promise<void> {
  await expect(sandbox.exec({ argv: ["id"] })).rejects.toMatchObject({ code: "command_not_allowed" });
  const long = await sandbox.shell("i=0; while [ $i -lt 100 ]; do echo 0123456789; i=$((i+1)); done");
  expect(long.truncated.stdout).toBe(true);
  expect(long.stdout.length).toBeLessThan(400);
}

/** Opens a kept sandbox of 0.1, restores its snapshot, opens it once more and removes it; `look` is called each time. */
export async function liveOn(
  backend: string,
  { id, snapshot, workDir }: Kept,
  options: SandboxOptions,
  look: (sandbox: Sandbox) => Promise<void>,
): Promise<void> {
  expect(await listSandboxes()).toMatchObject([{ id, backend, state: "kept", alive: false }]);
  expect(await listSnapshots()).toMatchObject([{ id: snapshot, sandboxId: id, backend }]);
  const open = (): Promise<Sandbox> => openSandbox({ id, backend, ...options });
  const first = await open();
  expect(first.workDir).toBe(workDir);
  expect(await first.readFile("kept.txt")).toBe("latest\n");
  await expectRestricted(first);
  await look(first);
  await first.restore(snapshot);
  expect(await first.readFile("kept.txt")).toBe("saved\n");
  await first.writeFile("kept.txt", "later\n");
  await look(first);
  await first.teardown();
  const second = await open();
  expect(await second.readFile("kept.txt")).toBe("later\n");
  await expectRestricted(second);
  await look(second);
  await second.teardown();
  await deleteSnapshot(snapshot);
  await removeSandbox(id);
  expect([await listSandboxes(), await listSnapshots()]).toEqual([[], []]);
  expect(readdirSync(join(home(), "sandboxes"))).toEqual([]);
}

/** How a record of version 0.1 names a repository, its commit, and the shared checkouts of it. */
export function valuesOf(repository: string): Values {
  const bases = createHash("sha256").update(join(repository, ".git")).digest("hex").slice(0, 16);
  return { REPO: repository, SHA: git(repository, "rev-parse", "HEAD"), BASES: bases };
}

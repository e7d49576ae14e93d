import { mkdir, readdir, rm, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { packDirectory } from "../util/tar-pack.js";
import { unpackTar } from "../util/tar-unpack.js";
import { checkPath } from "./checks.js";
import { SandboxError } from "./errors.js";
import { resolveInside } from "./sandbox-path.js";
import type { SandboxState } from "./sandbox-state.js";

/** Copies a directory out to a host path that is absent or empty; on failure nothing of it stays there. */
export async function exportDirectory(
  state: SandboxState,
  sandboxPath: string,
  hostPath: string,
  signal: AbortSignal,
): Promise<string> {
  const source = resolveInside(state, sandboxPath, "sandboxPath");
  checkPath(hostPath, "hostPath");
  const target = resolve(hostPath);
  const found = await state.driver.stat(source);
  if (found === null) throw new SandboxError("not_found", `There is no directory ${source}`);
  if (found.type === "file" || found.type === "other") {
    throw new SandboxError("invalid_path", `The path ${source} is no directory: ${found.type}`);
  }
  const existed = await isEmptyDirectory(target);
  await mkdir(target, { recursive: true });
  try {
    await unpackTar(until(state.driver.exportTree(source), signal), target);
  } catch (error) {
    await empty(target, existed);
    throw error;
  }
  return target;
}

/** Copies a host directory in, over what is there. */
export async function refreshFromHost(
  state: SandboxState,
  hostPath: string,
  sandboxPath: string,
  signal: AbortSignal,
): Promise<void> {
  checkPath(hostPath, "hostPath");
  const target = resolveInside(state, sandboxPath, "sandboxPath");
  const source = resolve(hostPath);
  const found = await stat(source).catch(absent);
  if (found === undefined) throw new SandboxError("not_found", `There is no directory ${source} on the host`);
  if (!found.isDirectory()) throw new SandboxError("invalid_path", `The host path ${source} is no directory`);
  await state.driver.importTree(until(packDirectory(source), signal), target);
}

async function isEmptyDirectory(path: string): Promise<boolean> {
  const found = await stat(path).catch(absent);
  if (found === undefined) return false;
  if (!found.isDirectory()) throw new SandboxError("conflict", `The host path ${path} is no directory`);
  if ((await readdir(path)).length > 0) {
    throw new SandboxError("conflict", `The host directory ${path} is not empty`, { hint: "choose a new directory" });
  }
  return true;
}

async function empty(path: string, keepItself: boolean): Promise<void> {
  if (!keepItself) return rm(path, { recursive: true, force: true });
  for (const name of await readdir(path)) await rm(join(path, name), { recursive: true, force: true });
}

function absent(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT") throw error;
}

/** Passes a stream on until the signal says that the time is up, also when the next piece never comes. */
async function* until(source: AsyncIterable<Uint8Array>, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const iterator = source[Symbol.asyncIterator]();
  const expired = new Promise<never>((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
  expired.catch(() => undefined);
  try {
    for (;;) {
      signal.throwIfAborted();
      const next = await Promise.race([iterator.next(), expired]);
      if (next.done === true) return;
      yield next.value;
    }
  } finally {
    iterator.return?.().then(undefined, () => undefined);
  }
}

import { lstat, readdir, readFile, stat, unlink } from "node:fs/promises";
import { join, resolve } from "node:path";
import { SandboxError } from "../../../../contracts/errors.js";
import { check, path } from "../../../util/schema.js";
import { packDirectory } from "../../../util/tar/tar-pack.js";
import { unpackTar } from "../../../util/tar/tar-unpack.js";
import { INSIDE_GIT } from "../../git.js";
import { MAX_IMPORT_BYTES } from "../../types.js";
import type { OpenSandboxState } from "../open-sandbox-state.js";
import { resolveInside } from "../sandbox-path.js";
import { untilAborted } from "./until-aborted.js";

const SLASH = Buffer.from("/");
const MOST_NAMED = 5;

/** Copies a directory out to a host path that is absent or empty: all of it or nothing. */
export async function exportDirectory(
  state: OpenSandboxState,
  sandboxPath: string,
  hostPath: string,
  signal: AbortSignal,
): Promise<string> {
  const source = resolveInside(state, sandboxPath, "sandboxPath");
  check(hostPath, path, "hostPath");
  const target = resolve(hostPath);
  const found = await state.files.stat(source, { signal });
  if (found === null) throw new SandboxError("not_found", `There is no directory ${source}`);
  if (found.type === "file" || found.type === "other") {
    throw new SandboxError("invalid_path", `The path ${source} is not a directory but a ${found.type}`);
  }
  assertElsewhere(state, target);
  await assertVacant(target);
  const tar = untilAborted(state.files.exportTree(source), signal);
  const { leftOut } = await unpackTar(tar, target, { links: { origin: source } });
  if (leftOut.length > 0) state.emit?.("warning", describeLinks(source, leftOut));
  await dropPointer(join(target, ".git"));
  return target;
}

/** Removes the file that points to git in the sandbox. On the host git would fail because of it, even in a repository above. */
async function dropPointer(path: string): Promise<void> {
  const found = await lstat(path).catch(absent);
  if (found?.isFile() !== true || found.size > 100) return;
  if ((await readFile(path, "utf8")) === `gitdir: ${INSIDE_GIT}\n`) await unlink(path);
}

/** Copies a host directory in, over what is there. One that is too large is refused before anything changes. */
export async function refreshFromHost(
  state: OpenSandboxState,
  hostPath: string,
  sandboxPath: string,
  signal: AbortSignal,
): Promise<void> {
  check(hostPath, path, "hostPath");
  const target = resolveInside(state, sandboxPath, "sandboxPath");
  const source = resolve(hostPath);
  const found = await stat(source).catch(absent);
  if (found === undefined) throw new SandboxError("not_found", `There is no directory ${source} on the host`);
  if (!found.isDirectory()) throw new SandboxError("invalid_path", `The host path ${source} is not a directory`);
  await assertFits(source, signal);
  await state.files.importTree(untilAborted(packDirectory(source), signal), target, { signal });
}

function describeLinks(source: string, names: readonly string[]): string {
  const shown = names.slice(0, MOST_NAMED).map((name) => JSON.stringify(name));
  const more = names.length > shown.length ? ` and ${names.length - shown.length} more` : "";
  return `Skipped links that lead out of ${source}: ${shown.join(", ")}${more}`;
}

/** Where commands can write, a link above the host path could redirect the files. */
function assertElsewhere({ driver }: OpenSandboxState, path: string): void {
  if (driver.hostDir === undefined || !`${path}/`.startsWith(`${driver.hostDir}/`)) return;
  throw new SandboxError("conflict", `The host path ${path} is inside the sandbox's own directory`, {
    retryable: false,
    hint: "choose a directory elsewhere",
  });
}

/** A link is refused: anybody who can write to its target would choose where the files go. */
async function assertVacant(path: string): Promise<void> {
  const found = await lstat(path).catch(absent);
  if (found === undefined) return;
  const hint = "choose a new directory";
  if (found.isSymbolicLink()) throw new SandboxError("conflict", `The host path ${path} is a symbolic link`, { hint });
  if (!found.isDirectory()) throw new SandboxError("conflict", `The host path ${path} is not a directory`, { hint });
  if ((await readdir(path)).length === 0) return;
  throw new SandboxError("conflict", `The host directory ${path} is not empty`, { hint });
}

async function assertFits(root: string, signal: AbortSignal): Promise<void> {
  let left = MAX_IMPORT_BYTES;
  const directories = [Buffer.from(root)];
  for (let at = directories.pop(); at !== undefined; at = directories.pop()) {
    signal.throwIfAborted();
    for (const name of await readdir(at, { encoding: "buffer" }).catch(() => [])) {
      const path = Buffer.concat([at, SLASH, name]);
      const found = await lstat(path).catch(() => undefined);
      if (found?.isDirectory()) directories.push(path);
      if (found?.isFile()) left -= found.size;
      if (left >= 0) continue;
      throw new SandboxError("limit_exceeded", `The host directory ${root} is larger than ${MAX_IMPORT_BYTES} bytes`, {
        hint: "copy it in parts, or mount it: mounts: [{ source }]",
      });
    }
  }
}

function absent(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT") throw error;
}

import { randomBytes } from "node:crypto";
import { closeSync, fsync, mkdirSync, openSync, renameSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { deflate, deflateSync, inflate } from "node:zlib";
import { SandboxError } from "../../../../contracts/errors.js";
import type { GitObject } from "./git-object.js";

const compress = promisify(deflate);
const decompress = promisify(inflate);
const sync = promisify(fsync);
/** Bytes that are compressed faster than they are sent to another thread. */
const SMALL = 1 << 15;

/** Stores objects in a repository as git does, each in its own file; durable ones survive a power loss. Fast for the usual few. */
export async function writeLooseObjects(
  objects: string,
  wanted: readonly GitObject[],
  isDurable = false,
): Promise<void> {
  await Promise.all(wanted.map((object) => writeLooseObject(objects, object, isDurable)));
}

async function writeLooseObject(objects: string, { id, bytes }: GitObject, isDurable: boolean): Promise<void> {
  const directory = join(objects, id.slice(0, 2));
  const path = join(directory, id.slice(2));
  if (freshen(path)) return await checkStored(path, bytes, isDurable);
  const content = bytes.length <= SMALL ? deflateSync(bytes) : await compress(bytes);
  // Git knows such names, and removes them if we are killed.
  const draft = join(directory, `tmp_obj_${randomBytes(6).toString("hex")}`);
  mkdirSync(directory, { recursive: true });
  const file = openSync(draft, "wx", 0o444);
  try {
    try {
      writeFileSync(file, content);
      if (isDurable) await sync(file);
    } finally {
      closeSync(file);
    }
    renameSync(draft, path);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
}

/** Refuses an object whose name has another content in the store: SHA-1 collisions can be made. */
async function checkStored(path: string, bytes: Buffer, isDurable: boolean): Promise<void> {
  const file = await open(path);
  try {
    const stored = await decompress(await file.readFile(), { maxOutputLength: bytes.length }).catch(() => undefined);
    if (stored === undefined || !bytes.equals(stored)) {
      throw new SandboxError("tampered", `${path} exists with another content`);
    }
    if (isDurable) await file.sync();
  } finally {
    await file.close();
  }
}

/** Whether an object exists; if so, makes it look new, so that git doesn't remove it as a leftover. */
function freshen(path: string): boolean {
  const now = new Date();
  try {
    utimesSync(path, now, now);
    return true;
  } catch {
    return false;
  }
}

import { randomBytes } from "node:crypto";
import { mkdir, open, rename, unlink, utimes } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { deflate } from "node:zlib";
import type { GitObject } from "./git-object.js";

const compress = promisify(deflate);

/** Stores objects in a repository, each in a file of its own, as git does; durable ones would survive a power loss from then on. */
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
  if (await freshen(path)) return;
  const content = await compress(bytes);
  // Git knows such names, and cleans them up when whoever wrote them was killed.
  const draft = join(directory, `tmp_obj_${randomBytes(6).toString("hex")}`);
  try {
    const file = await open(draft, "wx", 0o444).catch(async (error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOENT") throw error;
      await mkdir(directory, { recursive: true });
      return await open(draft, "wx", 0o444);
    });
    try {
      await file.writeFile(content);
      if (isDurable) await file.sync();
    } finally {
      await file.close();
    }
    await rename(draft, path);
  } catch (error) {
    await unlink(draft).catch(() => undefined);
    throw error;
  }
}

/** Whether an object is there already; it is as new then, so that no cleaning takes it for a leftover. */
async function freshen(path: string): Promise<boolean> {
  const now = new Date();
  return await utimes(path, now, now).then(
    () => true,
    () => false,
  );
}

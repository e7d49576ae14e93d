import { existsSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";

/**
 * A folder that all tests of a run share. The first who needs it makes it, whole or not at all; of those who do so at one
 * time one is taken. It is gone at the end of the run.
 */
export function madeForRun(name: string, make: (folder: string) => void): string {
  const place = process.env["GLOVEBOX_TEST_PLACE"];
  if (place === undefined) throw new Error(`there is no place for ${name}: vitest ran without its set-up`);
  const shared = join(place, name);
  if (existsSync(shared)) return shared;
  const own = mkdtempSync(join(place, `${name}-`));
  make(own);
  try {
    renameSync(own, shared);
  } catch (error) {
    if (!existsSync(shared)) throw error;
    rmSync(own, { recursive: true });
  }
  return shared;
}

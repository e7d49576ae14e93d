import { existsSync, readdirSync, rmSync } from "node:fs";
import module from "node:module";
import { join } from "node:path";
import { ownVersion } from "../util/own-version.js";
import { privateSubdirectory } from "./home.js";

/** What Node has for this from version 22.8 on. */
interface CompileCache {
  enableCompileCache?(directory: string): unknown;
}

/**
 * Lets Node keep the compiled code of what is loaded from now on. Node runs what it finds there unseen, so the directory is one of the home's, which
 * only this user can write to. It has the code of one version of Glovebox.
 */
export function useCompileCache(): void {
  const { enableCompileCache } = module as CompileCache;
  if (enableCompileCache === undefined) return;
  try {
    const parent = privateSubdirectory("compiled");
    const directory = join(parent, ownVersion());
    if (!existsSync(directory)) for (const name of readdirSync(parent)) rmSync(join(parent, name), { recursive: true });
    enableCompileCache(directory);
  } catch {
    // The verb itself reports a home that can't be used.
  }
}

import { trimEntries } from "../../../machine/cache-entries.js";
import { listBases } from "../../git/source/base-cache.js";
import { listClones } from "../../git/source/clone-cache.js";
import { listEtc } from "./etc-cache.js";

/** Removes from the caches what nothing uses, the least recently used first, until the rest fits. */
export async function trimCache(maxBytes: number): Promise<string[]> {
  return await trimEntries([...(await listBases()), ...(await listClones()), ...(await listEtc())], maxBytes);
}

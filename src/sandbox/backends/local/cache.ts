import { trimEntries } from "../../../machine/cache-entries.js";
import { listBases, listClones } from "../../git.js";
import { listEtc } from "./etc-cache.js";

/** Removes unused cache entries, least recently used first, until the rest fits. */
export async function trimCache(maxBytes: number): Promise<string[]> {
  return await trimEntries([...(await listBases()), ...(await listClones()), ...(await listEtc())], maxBytes);
}

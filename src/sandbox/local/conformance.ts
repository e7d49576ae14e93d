import type { BackendModule } from "../registry.js";

/** What the conformance kit is to know about the local backend. */
export const conformance: NonNullable<BackendModule["conformance"]> = {
  skips: {
    "restore.files": "the local backend takes snapshots but cannot restore them yet",
    "restore.twice": "the local backend takes snapshots but cannot restore them yet",
    "restore.unknown": "the local backend takes snapshots but cannot restore them yet",
  },
  directoryOf: ({ workDir }) => workDir,
  sharesNetwork: true,
};

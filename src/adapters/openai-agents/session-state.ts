import type { SandboxSessionState, Snapshot } from "@openai/agents-core/sandbox";
import { internal } from "./load-agents.js";

/** What the state of a session has besides what the SDK puts there. It can be stored: it has no secret in it. */
export interface GloveboxSandboxSessionState extends SandboxSessionState {
  /** The id of the sandbox. It can be reopened while it is open, and if it is kept. */
  sandboxId: string;
  /** The ports that may be asked for. Empty: all. */
  configuredExposedPorts: number[];
  /** The variables of the manifest with their values. Those that the manifest calls ephemeral are never stored. */
  environment: Record<string, string>;
}

/** The kind of the snapshots that Glovebox makes; their id is the snapshot's in the ledger. */
export const SNAPSHOT_TYPE = "glovebox";

/** What may be stored of a state: no ephemeral variables, and no host path that only the program of today may name. */
export function toStored(state: GloveboxSandboxSessionState): Record<string, unknown> {
  return {
    ...internal.serializeMountCredentialRedactionMetadata(state),
    ...internal.serializeHostPathGrantRedactionMetadata(state),
    manifest: internal.serializeManifest(state.manifest),
    environment: internal.sanitizeEnvironmentForPersistence(state),
    sandboxId: state.sandboxId,
    configuredExposedPorts: state.configuredExposedPorts,
    snapshot: state.snapshot ?? null,
  };
}

/** The state that was stored. */
export async function fromStored(stored: Record<string, unknown>): Promise<GloveboxSandboxSessionState> {
  const manifest = internal.deserializeManifest(internal.readOptionalRecord(stored["manifest"]));
  const environment = internal.isStringRecord(stored["environment"]) ? stored["environment"] : {};
  return {
    ...internal.deserializeMountCredentialRedactionMetadata(stored),
    ...internal.deserializeHostPathGrantRedactionMetadata(stored),
    manifest,
    environment: await internal.rehydratePersistedEnvironmentForRuntime(manifest, environment),
    sandboxId: internal.readString(stored, "sandboxId"),
    configuredExposedPorts: internal.readOptionalNumberArray(stored["configuredExposedPorts"]) ?? [],
    snapshot: readSnapshot(stored["snapshot"]),
  };
}

function readSnapshot(value: unknown): Snapshot | null {
  const { type, id } = internal.readOptionalRecord(value) ?? {};
  return type === SNAPSHOT_TYPE && typeof id === "string" ? { type, id } : null;
}

import type {
  Manifest,
  SandboxClient,
  SandboxClientCreateArgs,
  SandboxClientOptions,
  SandboxClientResumeOptions,
  SandboxSessionSerializationOptions,
} from "@openai/agents-core/sandbox";
import { SandboxError } from "../../../contracts/errors.js";
import type { Sandbox } from "../../../contracts/sandbox.js";
import { deleteSnapshot, listSandboxes, type OpenOptions, openSandbox, removeSandbox } from "../../sandbox.js";
import { GloveboxSandboxSession } from "./glovebox-sandbox-session.js";
import { internal, sandboxes } from "./load-agents.js";
import { assertConcurrencyLimits, assertManifestSupported, withManifest } from "./manifest-rules.js";
import { materializeManifest } from "./materialize.js";
import { unsupported, withSdkErrors } from "./sdk-error.js";
import { fromStored, type GloveboxSandboxSessionState, SNAPSHOT_TYPE, toStored } from "./session-state.js";

/** How to make sandboxes for `SandboxAgent`: the options of `openSandbox`, and these. The manifest's root is the work directory. */
export interface GloveboxSandboxClientOptions
  extends SandboxClientOptions,
    Omit<OpenOptions, "id" | "snapshot" | "workDir"> {
  /** The ports that may be asked for. Default: any. */
  exposedPorts?: number[];
  /**
   * What the state of a finished run can be resumed from. `snapshot`: its files, saved before the sandbox is closed; delete them with `delete(state)`.
   * Default `none`.
   */
  persistence?: "snapshot" | "none";
}

/** Marks the sandboxes of this adapter: a stored state opens no other. */
const LABELS = { "glovebox/adapter": "openai-agents" };

/**
 * The sandboxes of sessions that are not closed. The SDK resumes a stored run by its state, in the process that has the sandbox open, too, and expects
 * the session that it gets to close it.
 */
const open = new Map<string, Sandbox>();

/** Makes Glovebox sandboxes for a `SandboxAgent`: `run(agent, input, { sandbox: { client: new GloveboxSandboxClient() } })`. */
export class GloveboxSandboxClient implements SandboxClient<GloveboxSandboxClientOptions, GloveboxSandboxSessionState> {
  readonly backendId = "glovebox";
  readonly #options: GloveboxSandboxClientOptions;
  readonly #sandboxes = new WeakMap<GloveboxSandboxSessionState, Sandbox>();

  constructor(options: GloveboxSandboxClientOptions = {}) {
    this.#options = options;
  }

  /** Opens a sandbox and puts the manifest's files into it. If that fails, nothing is left of it. */
  async create(
    args?: SandboxClientCreateArgs<GloveboxSandboxClientOptions> | Manifest,
    manifestOptions?: GloveboxSandboxClientOptions,
  ): Promise<GloveboxSandboxSession> {
    const given = sandboxes.normalizeSandboxClientCreateArgs(args, manifestOptions);
    const { manifest, archiveLimits } = given;
    if (given.snapshot !== undefined && !sandboxes.isNoopSnapshotSpec(given.snapshot)) {
      throw unsupported("snapshot", `snapshots of the type ${given.snapshot.type}; use the option "persistence"`);
    }
    assertManifestSupported(manifest);
    const options = { ...this.#options, ...given.options };
    assertConcurrencyLimits(given.concurrencyLimits ?? options["concurrencyLimits"]);
    const environment = await manifest.resolveEnvironment();
    return await withSdkErrors(async () => {
      const sandbox = await openSandbox(this.#toOpen(options, manifest));
      try {
        await materializeManifest(sandbox, manifest);
      } catch (error) {
        await sandbox.teardown();
        throw error;
      }
      const configuredExposedPorts = [...new Set((options.exposedPorts ?? []).map(sandboxes.normalizeExposedPort))];
      return this.#toSession(
        sandbox,
        { manifest, environment, sandboxId: sandbox.id, configuredExposedPorts, snapshot: null },
        archiveLimits,
      );
    });
  }

  /** Goes on with a sandbox that is still open or kept, otherwise with a new one from the saved files. */
  async resume(
    state: GloveboxSandboxSessionState,
    { archiveLimits, clientOptions }: SandboxClientResumeOptions<GloveboxSandboxClientOptions> = {},
  ): Promise<GloveboxSandboxSession> {
    internal.assertMountCredentialsRebound(state);
    internal.assertHostPathGrantsRebound(state);
    const options = { ...this.#options, ...clientOptions };
    return await withSdkErrors(async () => {
      const sandbox = (await reopen(state.sandboxId)) ?? (await this.#openSaved(state, options));
      // The ports of the old sandbox have other addresses now, if any.
      const { exposedPorts: _, ...rest } = state;
      return this.#toSession(sandbox, { ...rest, sandboxId: sandbox.id }, archiveLimits);
    });
  }

  /** Removes the sandbox of a state for good, kept or not, and its saved files. */
  async delete(state: GloveboxSandboxSessionState): Promise<void> {
    await withSdkErrors(async () => {
      await this.#sandboxes.get(state)?.teardown();
      if ((await findOwn(state.sandboxId)) !== undefined) await removeSandbox(state.sandboxId).catch(ignoreMissing);
      if (state.snapshot?.type === SNAPSHOT_TYPE) await deleteSnapshot(state.snapshot.id).catch(ignoreMissing);
    });
  }

  /** What to store of a session. Its files are saved unless it stays open. */
  async serializeSessionState(
    state: GloveboxSandboxSessionState,
    options?: SandboxSessionSerializationOptions,
  ): Promise<Record<string, unknown>> {
    internal.assertSandboxSessionStateUsable(state);
    const sandbox = this.#sandboxes.get(state);
    const staysOpen = options?.reuseLiveSession === true && options.willCloseAfterSerialize !== true;
    if (sandbox !== undefined && !staysOpen && sandbox.capabilities.snapshot !== "none") {
      const id = await withSdkErrors(async () => await save(sandbox, state.manifest));
      state.snapshot = { type: SNAPSHOT_TYPE, id };
    }
    return toStored(state);
  }

  /** The state of a session that was stored. */
  async deserializeSessionState(state: Record<string, unknown>): Promise<GloveboxSandboxSessionState> {
    return await fromStored(state);
  }

  /** Whether a session that the SDK closes at the end of a run can be resumed. */
  canPersistOwnedSessionState(state: GloveboxSandboxSessionState): boolean {
    const capability = this.#sandboxes.get(state)?.capabilities.snapshot ?? "none";
    return this.#options.persistence === "snapshot" && capability !== "none";
  }

  async #openSaved(state: GloveboxSandboxSessionState, options: GloveboxSandboxClientOptions): Promise<Sandbox> {
    const { snapshot, manifest } = state;
    if (snapshot?.type !== SNAPSHOT_TYPE) {
      throw new sandboxes.SandboxSnapshotNotRestorableError(
        `The sandbox ${state.sandboxId} is gone and its files were not saved.`,
        { provider: "glovebox", sandboxId: state.sandboxId },
      );
    }
    const { repo: _, branch: __, image: ___, ...rest } = this.#toOpen(options, manifest);
    return await openSandbox({ ...rest, snapshot: snapshot.id });
  }

  #toOpen(options: GloveboxSandboxClientOptions, manifest: Manifest): OpenOptions {
    const {
      exposedPorts = [],
      persistence: _,
      snapshot: __,
      concurrencyLimits: ___,
      archiveLimits: ____,
      ...wanted
    } = options;
    const publish = [...new Set([...(wanted.publish ?? []), ...exposedPorts])];
    const labels = { ...wanted.labels, ...LABELS };
    return { ...withManifest(wanted, manifest), labels, ...(publish.length > 0 && { publish }) };
  }

  #toSession(
    sandbox: Sandbox,
    state: GloveboxSandboxSessionState,
    archiveLimits: SandboxClientResumeOptions["archiveLimits"],
  ): GloveboxSandboxSession {
    open.set(sandbox.id, sandbox);
    const session = new GloveboxSandboxSession(sandbox, state, () => open.delete(sandbox.id));
    session.setArchiveLimits(archiveLimits);
    this.#sandboxes.set(state, sandbox);
    return session;
  }
}

/** The sandbox of this adapter with that id, in the ledger. */
async function findOwn(id: string): Promise<string | undefined> {
  const own = await listSandboxes({ labels: LABELS });
  return own.find((each) => each.id === id)?.id;
}

async function reopen(id: string): Promise<Sandbox | undefined> {
  if ((await findOwn(id)) === undefined) return undefined;
  try {
    return open.get(id) ?? (await openSandbox({ id }));
  } catch (error) {
    if (error instanceof SandboxError && error.code === "not_found") return undefined;
    throw error;
  }
}

/** Saves the files, without those that the manifest calls ephemeral. */
async function save(sandbox: Sandbox, manifest: Manifest): Promise<string> {
  const ephemeral = [...manifest.ephemeralPersistencePaths()];
  if (ephemeral.length === 0) return await sandbox.snapshot();
  await using copy = await sandbox.fork();
  for (const path of ephemeral) await copy.remove(`${copy.workDir}/${path}`, { recursive: true });
  return await copy.snapshot();
}

function ignoreMissing(error: unknown): void {
  if (!(error instanceof SandboxError && error.code === "not_found")) throw error;
}

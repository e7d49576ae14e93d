import { toSandboxError } from "../../../contracts/errors.js";
import type { Sandbox } from "../../sandbox/types.js";
import { isoTime } from "../../util/iso-time.js";
import {
  type Checkpoint,
  isOnThisMachine,
  type RunDirectory,
  type RunRecorder,
  saveCheckpoint,
  savePatch,
  saveSessions,
} from "../store.js";
import type { NodeReport, RunContext } from "../types.js";
import { hasSession, packSessions } from "./agent-sessions.js";
import { stampOfFiles } from "./file-stamp.js";

/**
 * Writes down what each node did, with the files as they were after it. Saving files costs more than a short command
 * does, so it is done only when a cheap look says that something has changed.
 */
export class Checkpointer {
  readonly #directory: RunDirectory;
  readonly #recorder: RunRecorder;
  readonly #sandbox: Sandbox;
  readonly #context: RunContext;
  /** How the files looked when they were last known to be those of the snapshot. */
  #stamp: string | undefined;
  #snapshotId: string | undefined;
  /** Whether snapshots are commits in a repository of this machine. Undefined: there was none yet. */
  #isHere: boolean | undefined;
  #isFresh = false;
  readonly #sessionFolders: readonly string[];
  readonly #secrets: readonly string[];

  constructor(
    {
      directory,
      recorder,
      snapshotId,
      sessionFolders = [],
      secrets = [],
    }: {
      directory: RunDirectory;
      recorder: RunRecorder;
      snapshotId?: string;
      sessionFolders?: readonly string[];
      /** Values that no saved session may have. */
      secrets?: readonly string[];
    },
    sandbox: Sandbox,
    context: RunContext,
  ) {
    this.#directory = directory;
    this.#recorder = recorder;
    this.#snapshotId = snapshotId;
    this.#sessionFolders = sessionFolders;
    this.#secrets = secrets;
    this.#sandbox = sandbox;
    this.#context = context;
  }

  /** To be called when the files are those of the snapshot, or of the base when there is none. */
  async start(): Promise<void> {
    if (this.#canSave) this.#stamp = await stampOfFiles(this.#sandbox);
  }

  /** To be called instead in a resumed session: what it starts with is a checkpoint too. */
  async startAgain(nodes: readonly { id: string }[], startAt: number, isSaved: boolean): Promise<void> {
    if (!this.#canSave) return;
    if (isSaved) await this.start();
    else await this.#saveFiles();
    if (this.#snapshotId === undefined) return;
    await this.#write(nodes[startAt - 1]?.id ?? "start", startAt - 1, this.#context.results, true);
  }

  /** The snapshot that was made after the last node; undefined when that changed nothing, or was not saved. */
  get fresh(): string | undefined {
    return this.#isFresh ? this.#snapshotId : undefined;
  }

  /** To be called after each node. Only what went well is worth resuming from. */
  async save({ node, index }: { node: NodeReport; index: number }): Promise<void> {
    if (node.status === "skipped") return;
    this.#isFresh = false;
    if (node.status !== "success" && node.tolerated !== true) return;
    if (this.#canSave) await this.#saveFiles();
    if (hasSession(node) && this.#sessionFolders.length > 0) await this.#saveSessions(node.id, index);
    await this.#write(node.id, index, { ...this.#context.results, [node.id]: node }, this.#isFresh);
  }

  /** Without them, a node that continues one starts a new session after a resume, and says so. */
  async #saveSessions(nodeId: string, index: number): Promise<void> {
    try {
      const archive = await packSessions(this.#sandbox, this.#sessionFolders, this.#secrets);
      await saveSessions(this.#directory, { nodeId, index }, archive);
    } catch (error) {
      await this.#recorder.warn(`a resumed run starts new sessions: ${toSandboxError(error).message}`);
    }
  }

  async #write(nodeId: string, index: number, results: Checkpoint["results"], hasNewFiles: boolean): Promise<void> {
    const snapshotId = this.#snapshotId;
    const saved = { nodeId, ...(snapshotId !== undefined && { snapshotId }) };
    const savedAt = isoTime();
    const { workDir } = this.#sandbox;
    const checkpoint: Checkpoint = { version: 1, index, ...saved, isSaved: this.#canSave, results, workDir, savedAt };
    await saveCheckpoint(this.#directory, checkpoint, hasNewFiles);
    await this.#recorder.record({ type: "checkpoint.saved", ...saved });
  }

  get #canSave(): boolean {
    return this.#sandbox.capabilities.snapshot !== "none";
  }

  async #saveFiles(): Promise<void> {
    const stamp = await stampOfFiles(this.#sandbox);
    if (stamp !== undefined && stamp === this.#stamp) return;
    this.#stamp = undefined;
    const snapshotId = await this.#sandbox.snapshot();
    this.#isHere ??= await isOnThisMachine(snapshotId);
    // What cannot be compared here must save its changes now, or they are gone with the sandbox.
    if (!this.#isHere) {
      await savePatch(this.#directory, snapshotId, (await this.#sandbox.changes()).patch);
    }
    this.#snapshotId = snapshotId;
    this.#isFresh = true;
    // A backend may commit in the sandbox to save the files: that is no change of the next node's. Where none does, what was
    // changed since the look is seen by the next one.
    this.#stamp = this.#isHere ? stamp : await stampOfFiles(this.#sandbox);
  }
}

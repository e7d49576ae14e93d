import { posix } from "node:path";
import type { Editor, ToolOutputImage } from "@openai/agents-core";
import type {
  ExecCommandArgs,
  ExposedPortEndpoint,
  ListDirectoryArgs,
  Manifest,
  MaterializeEntryArgs,
  ReadFileArgs,
  SandboxArchiveLimits,
  SandboxDirectoryEntry,
  SandboxExecResult,
  SandboxSession,
  ViewImageArgs,
  WorkspaceArchiveData,
  WorkspaceArchiveOptions,
  WriteStdinArgs,
} from "@openai/agents-core/sandbox";
import type { Sandbox } from "../../../contracts/sandbox.js";
import type { SpawnOptions } from "../../../contracts/types.js";
import { shellLine } from "../run-command.js";
import { agents, internal, sandboxes } from "./load-agents.js";
import { assertEntrySupported, assertManifestSupported, assertNoNewMounts } from "./manifest-rules.js";
import { materializeEntry, materializeManifest } from "./materialize.js";
import { RunningCommands } from "./running-commands.js";
import { SandboxEditor } from "./sandbox-editor.js";
import { unsupported, withSdkErrors } from "./sdk-error.js";
import type { GloveboxSandboxSessionState } from "./session-state.js";
import { packWorkspace, unpackWorkspace } from "./workspace-archive.js";

/** The size of a terminal that nobody has said anything about. */
const TERMINAL = { cols: 80, rows: 24 };

/** A session of a `SandboxAgent` in a Glovebox sandbox. */
export class GloveboxSandboxSession implements SandboxSession<GloveboxSandboxSessionState> {
  readonly state: GloveboxSandboxSessionState;
  /** The sandbox itself, with everything that the SDK has no word for. */
  readonly sandbox: Sandbox;
  readonly #commands: RunningCommands;
  #archiveLimits: SandboxArchiveLimits | null | undefined;
  readonly #onClose: (() => void) | undefined;
  #closing: Promise<void> | undefined;

  constructor(sandbox: Sandbox, state: GloveboxSandboxSessionState, onClose?: () => void) {
    this.sandbox = sandbox;
    this.state = state;
    this.#onClose = onClose;
    this.#commands = new RunningCommands(sandbox);
  }

  supportsPty(): boolean {
    return this.sandbox.capabilities.pty;
  }

  async exec(args: ExecCommandArgs): Promise<SandboxExecResult> {
    return await withSdkErrors(async () => await this.#commands.start(await this.#spawnOptions(args), args));
  }

  async execCommand(args: ExecCommandArgs): Promise<string> {
    return internal.formatExecResponse(await this.exec(args));
  }

  async writeStdin(args: WriteStdinArgs): Promise<string> {
    const result = await withSdkErrors(async () => await this.#commands.write(args));
    const output = `write_stdin failed: session not found: ${args.sessionId}`;
    return internal.formatExecResponse(result ?? { output, wallTimeSeconds: 0, exitCode: 1 });
  }

  createEditor(runAs?: string): Editor {
    assertOwnUser(runAs);
    return new SandboxEditor(this.sandbox, (path) => this.#resolve(path, true));
  }

  async viewImage({ path, runAs }: ViewImageArgs): Promise<ToolOutputImage> {
    assertOwnUser(runAs);
    return await withSdkErrors(async () => {
      const inside = this.#resolve(path);
      const found = await this.sandbox.stat(inside, { follow: true });
      if (found === null) throw new agents.UserError(`Image file not found: ${path}`);
      if (found.type !== "file") throw new agents.UserError(`Image path is not a file: ${path}`);
      internal.assertViewImageByteLength(path, found.size);
      const bytes = await this.sandbox.readBytes(inside);
      if (bytes === null) throw new agents.UserError(`Image file not found: ${path}`);
      return internal.imageOutputFromBytes(path, bytes);
    });
  }

  async readFile({ path, maxBytes, runAs }: ReadFileArgs): Promise<Uint8Array> {
    assertOwnUser(runAs);
    return await withSdkErrors(async () => {
      const end = maxBytes === undefined ? {} : { end: maxBytes };
      const stream = await this.sandbox.readStream(this.#resolve(path), end);
      if (stream === null) throw new sandboxes.SandboxWorkspaceReadNotFoundError(`File not found: ${path}`);
      const chunks: Uint8Array[] = [];
      for await (const chunk of stream) chunks.push(chunk);
      return Buffer.concat(chunks);
    });
  }

  async listDir({ path, runAs }: ListDirectoryArgs): Promise<SandboxDirectoryEntry[]> {
    assertOwnUser(runAs);
    return await withSdkErrors(async () => {
      const inside = this.#resolve(path);
      const parent = posix.relative(this.state.manifest.root, inside);
      const entries = await this.sandbox.listDirectory(inside, { details: true });
      return entries.map(({ name, type }) => ({
        name,
        path: posix.join(parent, name),
        type: type === "directory" ? "dir" : type === "file" ? "file" : "other",
      }));
    });
  }

  async pathExists(path: string, runAs?: string): Promise<boolean> {
    assertOwnUser(runAs);
    return await withSdkErrors(async () => await this.sandbox.exists(this.#resolve(path)));
  }

  async directoryExists(path: string, runAs?: string): Promise<boolean> {
    assertOwnUser(runAs);
    return await withSdkErrors(async () => {
      return (await this.sandbox.stat(this.#resolve(path), { follow: true }))?.type === "directory";
    });
  }

  async materializeEntry({ path, entry, runAs }: MaterializeEntryArgs): Promise<void> {
    const given = structuredClone(entry);
    await this.#changeManifest(async () => {
      const { root, extraPathGrants } = this.state.manifest;
      const inside = this.#resolve(path, true);
      const logical = posix.relative(root, inside);
      const merged = internal.mergeManifestEntryDelta(this.state.manifest, logical, given);
      internal.validateMountCredentialBoundaries(merged);
      assertOwnUser(runAs);
      assertEntrySupported(logical, given);
      assertNoNewMounts(new sandboxes.Manifest({ root, entries: { [logical]: given } }));
      await materializeEntry(this.sandbox, inside, given, extraPathGrants);
      return merged;
    });
  }

  async applyManifest(manifest: Manifest, runAs?: string): Promise<void> {
    const given = sandboxes.cloneManifest(manifest);
    await this.#changeManifest(async () => {
      const merged = internal.mergeManifestDelta(this.state.manifest, given);
      internal.validateMountCredentialBoundaries(merged);
      assertOwnUser(runAs);
      assertManifestSupported(given);
      assertNoNewMounts(given);
      const environment = await given.resolveEnvironment();
      await materializeManifest(this.sandbox, given);
      this.state.environment = { ...this.state.environment, ...environment };
      return merged;
    });
  }

  async persistWorkspace(): Promise<Uint8Array> {
    const ephemeral = this.state.manifest.ephemeralPersistencePaths();
    return await withSdkErrors(async () => await packWorkspace(this.sandbox, ephemeral));
  }

  async hydrateWorkspace(data: WorkspaceArchiveData, options: WorkspaceArchiveOptions = {}): Promise<void> {
    const limits = options.archiveLimits === undefined ? this.#archiveLimits : options.archiveLimits;
    await withSdkErrors(async () => await unpackWorkspace(this.sandbox, data, limits));
  }

  setArchiveLimits(limits?: SandboxArchiveLimits | null): void {
    sandboxes.validateSandboxArchiveLimits(limits);
    this.#archiveLimits = limits;
  }

  async resolveExposedPort(port: number): Promise<ExposedPortEndpoint> {
    const wanted = sandboxes.normalizeExposedPort(port);
    const configuredPorts = this.state.configuredExposedPorts;
    if (configuredPorts.length > 0 && !configuredPorts.includes(wanted)) {
      throw new sandboxes.SandboxConfigurationError(
        `GloveboxSandboxClient was not configured to expose port ${wanted}.`,
        { provider: "glovebox", port: wanted, configuredPorts },
      );
    }
    const url = new URL(await withSdkErrors(async () => await this.sandbox.url(wanted)));
    const tls = url.protocol === "https:";
    const endpoint = {
      host: url.hostname,
      port: Number(url.port) || (tls ? 443 : 80),
      tls,
      query: url.search.slice(1),
    };
    return sandboxes.recordExposedPortEndpoint(this.state, endpoint, wanted);
  }

  async running(): Promise<boolean> {
    if (this.#closing !== undefined) return false;
    return await this.sandbox.exists(".").then(
      () => true,
      () => false,
    );
  }

  async stop(): Promise<void> {
    await this.#commands.stop();
  }

  async shutdown(): Promise<void> {
    await this.close();
  }

  async delete(): Promise<void> {
    await this.close();
  }

  /** Ends all commands and closes the sandbox. One with `keep` can be resumed; `GloveboxSandboxClient.delete` removes it. */
  async close(): Promise<void> {
    this.#closing ??= this.#close();
    await this.#closing;
  }

  async #close(): Promise<void> {
    this.#onClose?.();
    await this.#commands.stop();
    await this.sandbox.teardown();
  }

  async #spawnOptions({ cmd, workdir, shell, login, tty, runAs }: ExecCommandArgs): Promise<SpawnOptions> {
    if (tty === true && !this.supportsPty()) throw unsupported("pty", "terminals on this backend");
    const user = runAs?.trim() || undefined;
    if (user !== undefined && !this.sandbox.capabilities.user) throw unsupported("runAs", "runAs on this backend");
    const argv = shell ? [shell, login === false ? "-c" : "-lc", cmd] : await shellLine(this.sandbox, cmd);
    return {
      argv,
      cwd: this.#resolve(workdir),
      env: this.state.environment,
      stdin: "pipe",
      ...(user !== undefined && { user }),
      ...(tty === true && { pty: TERMINAL }),
    };
  }

  /** The path inside. Only the workspace and granted paths are there for the tools. */
  #resolve(path: string | undefined, forWrite = false): string {
    const { root, extraPathGrants } = this.state.manifest;
    return new sandboxes.WorkspacePathPolicy({ root, extraPathGrants }).resolve(path, { forWrite }).path;
  }

  /** Does one change of the manifest at a time, and records it when it is made. */
  async #changeManifest(work: () => Promise<Manifest>): Promise<void> {
    await internal.withExclusiveSandboxManifestMutation(this.state, async () => {
      this.state.manifest = await withSdkErrors(work);
    });
  }
}

/** File calls act as the sandbox's own user. */
function assertOwnUser(runAs: string | undefined): void {
  if (runAs?.trim()) throw unsupported("runAs", "runAs for files");
}

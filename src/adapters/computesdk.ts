import type {
  CommandResult,
  CreateSandboxOptions,
  FileEntry,
  Provider,
  RunCommandOptions,
  SandboxInfo,
} from "@computesdk/provider";
import { SandboxError } from "../../contracts/errors.js";
import { DEFAULT_OPERATION_TIMEOUT, type Sandbox } from "../../contracts/sandbox.js";
import { deleteSnapshot, listSnapshots, type OpenOptions, openSandbox, removeSandbox } from "../sandbox.js";
import { defined } from "../util/defined.js";
import { importFramework } from "./import-framework.js";
import { openForAgent } from "./open-for-agent.js";
import { deadlineLine, forCall, runCommand, shellLine } from "./run-command.js";

const { defineProvider } = await importFramework("@computesdk/provider", () => import("@computesdk/provider"));

/** How the provider opens sandboxes; `sandbox.create` can add to it. */
export type ComputeConfig = Omit<OpenOptions, "id" | "ifExists" | "signal">;

/** The sandboxes that providers of this process have open, each with its handles, and what it was opened with. */
const open = new Map<string, { handles: Sandbox[]; config: ComputeConfig }>();

/** A provider for `createCompute`, with sandboxes of any backend: `glovebox({ backend: "docker" })`. */
export const glovebox: (config?: ComputeConfig) => Provider<Sandbox> = (config = {}) => define(config);

const LOOPBACK = new Set(["127.0.0.1", "[::1]", "localhost"]);

const define = defineProvider<Sandbox, ComputeConfig>({
  name: "glovebox",
  methods: {
    sandbox: {
      create: async (config, options = {}) => remember(config, await openForAgent(toOptions(config, options))),
      async getById(config, id) {
        const sandbox = await openSandbox({ id, ...defined({ env: config.env, keep: config.keep }) }).catch(orNull);
        return sandbox === null ? null : remember(config, sandbox);
      },
      list: async () =>
        [...open].flatMap(([sandboxId, { handles }]) => {
          return handles.slice(-1).map((sandbox) => ({ sandbox, sandboxId }));
        }),
      async destroy(_config, id) {
        const handles = open.get(id)?.handles ?? [];
        open.delete(id);
        for (const handle of handles) await handle.teardown();
        await removeSandbox(id).catch(orNull);
      },
      runCommand: run,
      streamCommand: run,
      getInfo: async (sandbox) => describe(sandbox),
      getUrl,
      filesystem: {
        async readFile(sandbox, path) {
          const text = await sandbox.readFile(path);
          if (text === null) throw new Error(`ENOENT: no such file or directory, open '${path}'`);
          return text;
        },
        writeFile: async (sandbox, path, content) => await sandbox.writeFile(path, content),
        mkdir: async (sandbox, path) => await sandbox.makeDirectory(path),
        readdir: async (sandbox, path) => await readDirectory(sandbox, path),
        exists: async (sandbox, path) => await sandbox.exists(path),
        remove: async (sandbox, path) => void (await sandbox.remove(path, { recursive: true })),
      },
    },
    snapshot: {
      async create(_config, sandboxId, { name } = {}) {
        await using sandbox = await openSandbox({ id: sandboxId });
        const id = await sandbox.snapshot(defined({ name }));
        return { id, provider: "glovebox", createdAt: new Date(), metadata: { name, sandboxId } };
      },
      async list(_config, { sandboxId, limit } = {}) {
        const all = (await listSnapshots()).filter((each) => sandboxId === undefined || each.sandboxId === sandboxId);
        return all.slice(0, limit).map(({ id, createdAt, ...metadata }) => {
          return { id, provider: "glovebox", createdAt: new Date(createdAt), metadata };
        });
      },
      delete: async (_config, id) => await deleteSnapshot(id),
    },
  },
});

function remember(config: ComputeConfig, sandbox: Sandbox): { sandbox: Sandbox; sandboxId: string } {
  const handles = open.get(sandbox.id)?.handles ?? [];
  open.set(sandbox.id, { handles: [...handles, sandbox], config });
  return { sandbox, sandboxId: sandbox.id };
}

/** What ComputeSDK calls by other names. Its `timeout` is how long the sandbox lives. */
function toOptions(config: ComputeConfig, options: CreateSandboxOptions): OpenOptions {
  const { timeout, templateId, snapshotId, metadata, envs, name, directory, image, ports, signal } = options;
  const labels = Object.entries(metadata ?? {}).filter((each): each is [string, string] => typeof each[1] === "string");
  const { image: configured, ...rest } = config;
  const chosen = image ?? templateId ?? configured;
  return {
    ...rest,
    ...defined({ ttl: timeout, snapshot: snapshotId, name, workDir: directory, publish: ports, signal }),
    // A snapshot has the files of its own image.
    ...(snapshotId === undefined && chosen !== undefined && { image: chosen }),
    ...(envs !== undefined && { env: { ...config.env, ...envs } }),
    ...(labels.length > 0 && { labels: { ...config.labels, ...Object.fromEntries(labels) } }),
  };
}

async function run(sandbox: Sandbox, command: string, options: RunCommandOptions = {}): Promise<CommandResult> {
  const { background, onStdout, onStderr, timeout, cwd, env } = options;
  const call = { cwd, env, ...(timeout !== undefined && { timeout }) };
  if (background === true) {
    await sandbox.spawn({ argv: await shellLine(sandbox, command), ...forCall(call), background: true });
    return { stdout: "", stderr: "", exitCode: 0, durationMs: 0 };
  }
  const [out, err] = [decoded(onStdout), decoded(onStderr)];
  const result = await runCommand(sandbox, command, {
    ...call,
    ...(out && { onStdout: out.write }),
    ...(err && { onStderr: err.write }),
  });
  out?.end();
  err?.end();
  const { stdout, stderr, exitCode, durationMs, timedOut } = result;
  return { stdout, stderr: timedOut ? `${stderr}${deadlineLine(result)}\n` : stderr, exitCode, durationMs };
}

/** Hands bytes on as text: a character may come in two parts. */
function decoded(callback: ((text: string) => void) | undefined) {
  if (callback === undefined) return undefined;
  const decoder = new TextDecoder();
  const give = (text: string): void => (text === "" ? undefined : callback(text));
  return {
    write: (chunk: Uint8Array): void => give(decoder.decode(chunk, { stream: true })),
    end: (): void => give(decoder.decode()),
  };
}

function describe(sandbox: Sandbox): SandboxInfo {
  const { id, backend, workDir, labels, createdAt } = sandbox;
  const found = open.get(id);
  return {
    id,
    provider: "glovebox",
    status: found === undefined ? "stopped" : "running",
    createdAt: new Date(createdAt),
    timeout: found?.config.operationTimeout ?? DEFAULT_OPERATION_TIMEOUT,
    metadata: { ...labels, backend, workDir },
  };
}

async function getUrl(sandbox: Sandbox, { port, protocol }: { port: number; protocol?: string }): Promise<string> {
  const url = new URL(await sandbox.url(port));
  if (protocol === undefined) return url.href;
  const plain = protocol.replace(/^(http|ws)s$/, "$1");
  if (url.protocol === "https:") return withScheme(url, ["http", "ws"].includes(plain) ? `${plain}s` : protocol);
  // A connection that never leaves the machine needs no TLS; elsewhere it would not be what was asked for.
  if (plain !== protocol && !LOOPBACK.has(url.hostname)) {
    throw new Error(
      `${protocol} is not supported by the ${sandbox.backend} backend of glovebox: port ${port} is at ${url.href}`,
    );
  }
  return withScheme(url, plain);
}

function withScheme(url: URL, scheme: string): string {
  return `${scheme}:${url.href.slice(url.protocol.length)}`;
}

async function readDirectory(sandbox: Sandbox, path: string): Promise<FileEntry[]> {
  const entries = await sandbox.listDirectory(path, { details: true });
  return await Promise.all(
    entries.map(async ({ name, type, size, mtimeMs }) => {
      const real =
        type === "symlink" ? await sandbox.stat(`${path}/${name}`, { follow: true }).catch(() => null) : { type };
      const kind = real?.type === "directory" ? "directory" : "file";
      return { name, type: kind, size, modified: new Date(mtimeMs) };
    }),
  );
}

function orNull(error: unknown): null {
  if (error instanceof SandboxError && error.code === "not_found") return null;
  throw error;
}

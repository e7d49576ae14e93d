import { createHash } from "node:crypto";
import { SandboxError } from "../../../contracts/errors.js";
import type { Sandbox } from "../../../contracts/sandbox.js";
import type { NetworkPolicy } from "../../../contracts/types.js";
import { listSnapshots, type OpenOptions, openSandbox, removeSandbox } from "../../sandbox.js";
import { importFramework } from "../import-framework.js";
import { keepOf, openForAgent } from "../open-for-agent.js";
import { orAbortReason } from "../run-command.js";
import { createSandboxSession } from "./session.js";
import type { AiSdkNetworkPolicy, AiSdkNetworkSession, AiSdkSession } from "./types.js";

/** How the provider makes sandboxes, or a sandbox of yours that every session uses and none stops. */
export type ProviderOptions =
  | Omit<OpenOptions, "id" | "name" | "ifExists" | "snapshot" | "signal">
  | { sandbox: Sandbox };

/** What a session is made for. */
export interface SessionRequest {
  sessionId?: string;
  identity?: string;
  onFirstCreate?: (session: AiSdkSession, options: { abortSignal?: AbortSignal }) => Promise<void>;
  abortSignal?: AbortSignal;
}

/** The `HarnessV1SandboxProvider` of `@ai-sdk/harness`. */
export interface HarnessProvider {
  readonly specificationVersion: "harness-sandbox-v1";
  readonly providerId: string;
  createSession(options?: SessionRequest): Promise<AiSdkNetworkSession>;
  resumeSession(options: { sessionId: string; abortSignal?: AbortSignal }): Promise<AiSdkNetworkSession>;
}

const PROVIDER = "glovebox";
/** What prepares a snapshot in this process, by its name. */
const preparing = new Map<string, Promise<unknown>>();

/**
 * Makes a provider for a `HarnessAgent`. A session with an id is kept when it stops, under a name that any later process finds again. What
 * `onFirstCreate` prepares is saved as a snapshot, from which later sessions with the same `identity` start.
 */
export function createSandboxProvider(options: ProviderOptions = {}): HarnessProvider {
  const given = "sandbox" in options ? options.sandbox : undefined;
  const settings: OpenOptions = "sandbox" in options ? {} : options;
  return {
    specificationVersion: "harness-sandbox-v1",
    providerId: PROVIDER,
    createSession: async (request = {}) =>
      await inTermsOfHarness(request.abortSignal, async () => {
        if (given !== undefined) return toNetworkSession(given, { isOwner: false });
        return toNetworkSession(await openFor(settings, request), { isOwner: true });
      }),
    resumeSession: async ({ sessionId, abortSignal }) =>
      await inTermsOfHarness(abortSignal, async () => {
        if (given !== undefined) return toNetworkSession(given, { isOwner: false });
        const { env } = settings;
        const call = { ...(env && { env }), ...(abortSignal && { signal: abortSignal }), keep: await keepOf(settings) };
        const sandbox = await openSandbox({ id: nameOf("session", sessionId), ...call });
        return toNetworkSession(sandbox, { isOwner: true });
      }),
  };
}

/** Opens the sandbox of a new session: from the snapshot of its identity where there is one. */
async function openFor(settings: OpenOptions, request: SessionRequest): Promise<Sandbox> {
  const { sessionId, identity, onFirstCreate, abortSignal } = request;
  const named = sessionId === undefined ? {} : { name: nameOf("session", sessionId), keep: await keepOf(settings) };
  const options: OpenOptions = { ...settings, ...named, ...(abortSignal && { signal: abortSignal }) };
  if (identity === undefined || onFirstCreate === undefined) return await openForAgent(options);
  const { backend, image, repo, branch, workDir } = settings;
  const snapshot = nameOf("identity", JSON.stringify([identity, backend, image, repo, branch, workDir]));
  // Whoever comes second waits, and then starts from the snapshot; if it was not made, it makes it.
  const before = preparing.get(snapshot);
  const work = (async () => {
    await before?.catch(() => undefined);
    const [found] = await listSnapshots({ name: snapshot });
    if (found === undefined) return await prepare(options, snapshot, onFirstCreate, abortSignal);
    const { image: _, repo: __, branch: ___, workDir: ____, ...rest } = options;
    return await openForAgent({ ...rest, backend: found.backend, snapshot });
  })();
  preparing.set(snapshot, work);
  try {
    return await work;
  } finally {
    if (preparing.get(snapshot) === work) preparing.delete(snapshot);
  }
}

async function prepare(
  options: OpenOptions,
  snapshot: string,
  onFirstCreate: NonNullable<SessionRequest["onFirstCreate"]>,
  abortSignal: AbortSignal | undefined,
): Promise<Sandbox> {
  const sandbox = await openForAgent(options);
  try {
    await onFirstCreate(createSandboxSession(sandbox), abortSignal === undefined ? {} : { abortSignal });
    if (sandbox.capabilities.snapshot !== "none") {
      // Another process may have been faster.
      await sandbox.snapshot({ name: snapshot, ...(abortSignal && { signal: abortSignal }) }).catch(unlessConflict);
    }
    return sandbox;
  } catch (error) {
    await discard(sandbox);
    throw error;
  }
}

function toNetworkSession(sandbox: Sandbox, { isOwner }: { isOwner: boolean }): AiSdkNetworkSession {
  const session = createSandboxSession(sandbox);
  const getPortEndpoint: AiSdkNetworkSession["getPortEndpoint"] = async ({ port, protocol }) =>
    await inTermsOfHarness(undefined, async () => {
      const url = new URL(await sandbox.url(port));
      const isSecure = url.protocol === "https:";
      if (protocol === "https" && !isSecure) {
        throw new SandboxError("unsupported", `Port ${port} is reached at ${url.href}, without TLS`);
      }
      if (protocol === "ws") url.protocol = isSecure ? "wss:" : "ws:";
      return { url: url.href };
    });
  return {
    ...session,
    id: sandbox.id,
    defaultWorkingDirectory: sandbox.workDir,
    ports: sandbox.published,
    getPortEndpoint,
    getPortUrl: async (options) => (await getPortEndpoint(options)).url,
    ...(sandbox.capabilities.liveNetwork === true && {
      setNetworkPolicy: async (policy: AiSdkNetworkPolicy) =>
        await inTermsOfHarness(undefined, () => sandbox.setNetwork(toRules(policy))),
    }),
    stop: async () => (isOwner ? await sandbox.teardown() : undefined),
    destroy: async () => (isOwner ? await discard(sandbox) : undefined),
    restricted: () => session,
  };
}

function toRules(policy: AiSdkNetworkPolicy): Exclude<NetworkPolicy, "full"> {
  if (policy.mode === "deny-all") return "none";
  if (policy.mode === "allow-all") {
    throw new SandboxError("unsupported", 'The policy "allow-all" can\'t be set on an open sandbox', {
      hint: 'open it with network: "full"',
    });
  }
  const { allowedHosts = [], allowedCIDRs = [], deniedCIDRs = [] } = policy;
  const ranges = [...allowedCIDRs, ...deniedCIDRs];
  if (ranges.length > 0) {
    throw new SandboxError("unsupported", `Address ranges can't be enforced: ${ranges.join(", ")}`, {
      hint: "give allowedHosts; private addresses are refused anyway",
    });
  }
  return { allow: allowedHosts };
}

/** A name that the same id always has, and no other: ids of callers may have any characters. It must not look like one of our ids. */
function nameOf(kind: "session" | "identity", id: string): string {
  return `ai-sdk-${createHash("sha256").update(id).digest("hex").slice(0, 32)}-${kind}`;
}

async function discard(sandbox: Sandbox): Promise<void> {
  await sandbox.teardown();
  await removeSandbox(sandbox.id).catch((error: unknown) => {
    if (!(error instanceof SandboxError) || error.code !== "not_found") throw error;
  });
}

function unlessConflict(error: unknown): void {
  if (!(error instanceof SandboxError) || error.code !== "conflict") throw error;
}

/** Does the work; what the backend can't do and missing credentials become the harness's own errors. */
async function inTermsOfHarness<T>(signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
  try {
    return await orAbortReason(signal, work);
  } catch (cause) {
    if (!(cause instanceof SandboxError) || !["unsupported", "unauthenticated"].includes(cause.code)) throw cause;
    const harness = await importFramework("@ai-sdk/harness", () => import("@ai-sdk/harness")).catch(() => {
      throw cause;
    });
    const message = cause.hint === undefined ? cause.message : `${cause.message} (${cause.hint})`;
    throw cause.code === "unsupported"
      ? new harness.HarnessCapabilityUnsupportedError({ message, harnessId: PROVIDER, cause })
      : new harness.HarnessSandboxAuthenticationError({ message, sandboxProviderId: PROVIDER, cause });
  }
}

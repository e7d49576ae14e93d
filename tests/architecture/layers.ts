/** What may import what: a file may import its own module, and modules of a lower rank. */
const RANKS: Readonly<Record<string, number>> = {
  contracts: 0,
  util: 1,
  machine: 2,
  ledger: 3,
  sandbox: 4,
  tasks: 5,
  testing: 5,
  harness: 6,
  batch: 7,
  surfaces: 8,
  root: 9,
};

const SURFACES = ["cli", "mcp", "viewer", "adapters"];

/** Doors to the contract that the specs name: vocabulary, which every layer speaks. */
const CONTRACT_FILES = ["src/sandbox/types.ts"];

/** The backends: `src/sandbox/backends/<name>.ts` and the room behind it, and `src/sandbox/<name>.ts`, which the specs name. */
export const BACKENDS: readonly string[] = ["local", "docker", "daytona", "vercel", "dagger", "kubernetes"];

/** The one file that names the backends, through `import()`. */
export const REGISTRY = "src/sandbox/registry.ts";

/** The one file that names the container engines that serve tasks, through `import()`. */
export const ENGINE_REGISTRY = "src/tasks/manager-registry.ts";

/** A container engine: the file of a backend that only the registry of engines imports. */
export function isEngine(file: string): boolean {
  return /^src\/sandbox\/backends\/[^/]+\/container-engine\.ts$/.test(file);
}

/** The adapters: `src/adapters/<name>.ts` and the room behind it. What they share lies beside them. */
const ADAPTERS: readonly string[] = [
  ...["adk", "ai-sdk", "claude-agent-sdk", "computesdk", "deepagents", "langchain", "mastra", "openai-agents"],
];

/** The adapter that a file is part of. Each is an entry point of the package, and nothing else imports it. */
export function adapterOf(file: string): string | undefined {
  const name = /^src\/adapters\/([^/.]+)(?:\.ts$|\/)/.exec(file)?.[1];
  return name !== undefined && ADAPTERS.includes(name) ? name : undefined;
}

/** Files beside a backend's own and the registry that may name a backend, each with the reason. */
export const NAMES_BACKENDS: Readonly<Record<string, string>> = {
  "src/sandbox/backends/local.ts": "its hint on other systems names the Docker backend, as the contract says",
  "src/sandbox/backends/daytona/options.ts": "its hint names the backends that take a path",
  "src/sandbox/backends/registry-login.ts": "logins are those of the docker command",
  "src/sandbox/backends/kubernetes/registry/registry-client.ts": "Docker Hub's name, and its hint is a docker command",
  "src/sandbox/backends/kubernetes/registry/image-config.ts": "the types of Docker's manifests, which registries have",
  "src/index.ts": "exports what the specs call createLocalSandbox and createDockerSandbox",
  "src/tasks/manager-registry.ts": "the registry of container engines",
  "src/tasks/check-setup.ts": "host names that an engine gives to itself",
  "src/mcp/install/client-files.ts": "opencode calls a server that it starts itself local",
  "src/harness/types/run-types.ts": "spec 4 names the option daytona of a run",
  "src/harness/backend-facts.ts": "spec 4 names the option daytona of a run",
  "src/harness/run/resume-run.ts": "spec 4 names the option daytona of a run",
  "src/harness/agents/opencode.ts": "its configuration calls a program of the same machine local",
  "src/harness/run/check-options.ts": "spec 4 names the option daytona of a run",
};

/** The files that load what a user names: a backend, a blueprint that is code. */
export const LOADERS: readonly string[] = [REGISTRY, "src/harness/blueprint/import-code.ts"];

/** Files that a neighbour may import though they lie in a room: they are entry points of the package, or made for neighbours. */
export const PUBLIC_ROOM_FILES: readonly string[] = [
  ...CONTRACT_FILES,
  "src/sandbox/host.ts",
  "src/harness/parts.ts",
  ...BACKENDS.map((name) => `src/sandbox/${name}.ts`),
];

/** The module that a file belongs to, or undefined when no layer has a place for it. */
export function moduleOf(file: string): string | undefined {
  if (file.startsWith("contracts/") || CONTRACT_FILES.includes(file)) return "contracts";
  if (file === "src/index.ts") return "root";
  const name = /^src\/([^/.]+)(?:\.ts$|\/)/.exec(file)?.[1];
  if (name === undefined) return undefined;
  if (SURFACES.includes(name)) return "surfaces";
  return name in RANKS && name !== "root" && name !== "surfaces" ? name : undefined;
}

/** Whether the arrow between two modules points down. */
export function isArrowAllowed(from: string, to: string): boolean {
  if (from === to) return true;
  return (RANKS[to] ?? Number.POSITIVE_INFINITY) < (RANKS[from] ?? -1);
}

/** The backend that a file is part of. */
export function backendOf(file: string): string | undefined {
  const name = /^src\/sandbox\/(?:backends\/)?([^/.]+)(?:\.ts$|\/)/.exec(file)?.[1];
  return name !== undefined && BACKENDS.includes(name) ? name : undefined;
}

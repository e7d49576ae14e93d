import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { BlueprintSpec, HarnessOptions, NodeSpec, RunReport } from "../../src/harness.js";
import { egressInternals } from "../../src/sandbox/egress/open-egress.js";
import { createCertificate } from "../support/egress/certificate.js";
import { createHarnessBench, type HarnessBench } from "../support/harness/bench.js";
import { NODE_24, whyNoRuntime } from "../support/run/runtimes.js";
import { git } from "../support/scratch.js";
import { type ModelServer, startModelServer } from "./model-server.js";

/** Where the agents are installed; sandboxes see it at the same path. */
export const PROGRAMS: string = fileURLToPath(new URL("./programs", import.meta.url));
const INSTALLED = join(PROGRAMS, "node_modules");
/** The name of the gateway as the sandbox sees it; every name leads to this machine's loopback. */
const GATEWAY = "model.test";

/** The agents from npm, and the file of each that is run. */
const FILES: Readonly<Record<string, string>> = {
  claude: join(INSTALLED, "@anthropic-ai", "claude-code", "bin", "claude.exe"),
  codex: join(INSTALLED, "@openai", "codex", "bin", "codex.js"),
  pi: join(INSTALLED, "@earendil-works", "pi-coding-agent", "dist", "bundle", "cli.js"),
  opencode: join(INSTALLED, "opencode-linux-x64-baseline", "bin", "opencode"),
  gemini: join(INSTALLED, "@google", "gemini-cli", "bundle", "gemini.js"),
  copilot: join(INSTALLED, "@github", "copilot-linux-x64", "copilot"),
};

const GEMINI_SETTINGS = {
  general: { maxAttempts: 2 },
  security: { auth: { selectedType: "gemini-api-key" } },
};

/** Why an agent can't be run here; undefined when it can. */
export function whyNoAgent(program: string): string | undefined {
  if (process.platform !== "linux") return "the sandboxes of this suite run on Linux only";
  if (!existsSync(FILES[program] ?? "")) {
    return "its package is not installed: npm install --no-save --prefix tests/agents/programs";
  }
  return whyNoRuntime(NODE_24.program);
}

/** A scripted model as the agents of a sandbox reach it. */
export interface Gateway extends AsyncDisposable {
  readonly model: ModelServer;
  /** Its address, as an agent is given it. */
  readonly url: string;
  readonly network: { allow: string[] };
}

type RunOptions = Partial<HarnessOptions> & { spec?: Partial<BlueprintSpec> };

/** A repository, and the real agents on the PATH of the sandbox. */
export interface AgentBench extends AsyncDisposable {
  readonly harness: HarnessBench;
  readonly sandbox: NonNullable<HarnessOptions["sandbox"]>;
  /** Starts a model of its own. With TLS its certificate is one that the proxy accepts. */
  openGateway(options?: { tls?: boolean }): Promise<Gateway>;
  run(gateway: Gateway, runId: string, nodes: NodeSpec[], more?: RunOptions): Promise<RunReport>;
}

/** Makes a bench. Its repository has `sum.mjs` with a mistake, and a test that finds it. */
export async function createAgentBench(): Promise<AgentBench> {
  const harness = await createHarnessBench((repo) => {
    writeFileSync(join(repo, "sum.mjs"), "export const sum = (a, b) => a - b;\n");
    writeFileSync(
      join(repo, "test.mjs"),
      'import { sum } from "./sum.mjs";\nif (sum(2, 3) !== 5) throw new Error("2 + 3 is not " + sum(2, 3));\n',
    );
    // Gemini CLI takes this from a file only: a key for a gateway, and fewer tries.
    mkdirSync(join(repo, ".gemini"));
    writeFileSync(join(repo, ".gemini", "settings.json"), JSON.stringify(GEMINI_SETTINGS));
    git(repo, "add", "-A");
    git(repo, "commit", "--quiet", "-m", "a sum");
  });
  const certificate = createCertificate(harness.scratch.path, [GATEWAY]);
  egressInternals.route = { lookup: async () => ["127.0.0.1"], isReachable: (address) => address === "127.0.0.1" };
  egressInternals.ca = [certificate.cert.toString()];
  const bin = join(harness.scratch.path, "bin");
  mkdirSync(bin);
  for (const [name, file] of Object.entries(FILES)) {
    const words = file.endsWith("js") ? [NODE_24.program, file] : [file];
    writeFileSync(join(bin, name), `#!/bin/sh\nexec ${words.map((word) => `'${word}'`).join(" ")} "$@"\n`, {
      mode: 0o755,
    });
  }
  const sandbox = {
    mounts: [bin, PROGRAMS, join(NODE_24.program, "..", "..")].map((source) => ({ source })),
    env: { PATH: `${bin}:/usr/local/bin:/usr/bin:/bin` },
  };
  return {
    harness,
    sandbox,
    async openGateway({ tls = false } = {}) {
      const model = await startModelServer(tls ? certificate : undefined);
      const at = `${GATEWAY}:${model.port}`;
      return {
        model,
        url: `${tls ? "https" : "http"}://${at}`,
        network: { allow: [tls ? at : `plain://${at}`] },
        [Symbol.asyncDispose]: () => model[Symbol.asyncDispose](),
      };
    },
    run: ({ network }, runId, nodes, { spec, ...more } = {}) =>
      harness.run({
        ...{ blueprint: { name: runId, ...spec, nodes }, runId, keep: "never", sandbox, network, ...more },
      }),
    async [Symbol.asyncDispose]() {
      delete egressInternals.route;
      delete egressInternals.ca;
      await harness[Symbol.asyncDispose]();
    },
  };
}

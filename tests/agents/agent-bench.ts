import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { BlueprintSpec, HarnessOptions, NodeSpec, RunReport } from "../../src/harness.js";
import { egressInternals } from "../../src/sandbox/egress/open-egress.js";
import { createHarnessBench, type HarnessBench } from "../support/harness/bench.js";
import { NODE_24, whyNoRuntime } from "../support/run/runtimes.js";
import { git } from "../support/scratch.js";
import { type ModelServer, startModelServer } from "./model-server.js";

const PROGRAMS = fileURLToPath(new URL("./programs", import.meta.url));
const INSTALLED = join(PROGRAMS, "node_modules");
/** The name of the gateway as the sandbox sees it; every name leads to this machine's loopback. */
export const GATEWAY = "model.test";

/** The agents from npm, and the file of each that is run. */
const FILES: Readonly<Record<string, string>> = {
  claude: join(INSTALLED, "@anthropic-ai", "claude-code", "bin", "claude.exe"),
  codex: join(INSTALLED, "@openai", "codex", "bin", "codex.js"),
  pi: join(INSTALLED, "@earendil-works", "pi-coding-agent", "dist", "bundle", "cli.js"),
};

/** Why an agent can't be run here; undefined when it can. */
export function whyNoAgent(program: string): string | undefined {
  if (process.platform !== "linux") return "the sandboxes of this suite run on Linux only";
  if (!existsSync(FILES[program] ?? "")) {
    return "its package is not installed: npm install --no-save --prefix tests/agents/programs";
  }
  return whyNoRuntime(NODE_24.program);
}

/** A repository, a scripted model behind a gateway, and the real agents on the PATH of the sandbox. */
export interface AgentBench extends AsyncDisposable {
  readonly harness: HarnessBench;
  readonly model: ModelServer;
  /** The gateway's address, as an agent is given it. */
  readonly gateway: string;
  readonly sandbox: NonNullable<HarnessOptions["sandbox"]>;
  readonly network: { allow: string[] };
  run(
    runId: string,
    nodes: NodeSpec[],
    more?: Partial<HarnessOptions> & { spec?: Partial<BlueprintSpec> },
  ): Promise<RunReport>;
}

/** Makes a bench. Its repository has `sum.mjs` with a mistake, and a test that finds it. */
export async function createAgentBench(): Promise<AgentBench> {
  const model = await startModelServer();
  egressInternals.route = { lookup: async () => ["127.0.0.1"], isReachable: (address) => address === "127.0.0.1" };
  const harness = await createHarnessBench((repo) => {
    writeFileSync(join(repo, "sum.mjs"), "export const sum = (a, b) => a - b;\n");
    writeFileSync(
      join(repo, "test.mjs"),
      'import { sum } from "./sum.mjs";\nif (sum(2, 3) !== 5) throw new Error("2 + 3 is not " + sum(2, 3));\n',
    );
    git(repo, "add", "-A");
    git(repo, "commit", "--quiet", "-m", "a sum");
  });
  const bin = join(harness.scratch.path, "bin");
  mkdirSync(bin);
  for (const [name, file] of Object.entries(FILES)) {
    const words = file.endsWith("js") ? [NODE_24.program, file] : [file];
    writeFileSync(join(bin, name), `#!/bin/sh\nexec ${words.map((word) => `'${word}'`).join(" ")} "$@"\n`, {
      mode: 0o755,
    });
  }
  const gateway = `http://${GATEWAY}:${model.port}`;
  const sandbox = {
    mounts: [bin, PROGRAMS, join(NODE_24.program, "..", "..")].map((source) => ({ source })),
    env: { PATH: `${bin}:/usr/local/bin:/usr/bin:/bin` },
  };
  const network = { allow: [`plain://${GATEWAY}:${model.port}`] };
  return {
    harness,
    model,
    gateway,
    sandbox,
    network,
    run: (runId, nodes, { spec, ...more } = {}) =>
      harness.run({
        ...{ blueprint: { name: runId, ...spec, nodes }, runId, keep: "never", sandbox, network, ...more },
      }),
    async [Symbol.asyncDispose]() {
      delete egressInternals.route;
      await model[Symbol.asyncDispose]();
      await harness[Symbol.asyncDispose]();
    },
  };
}

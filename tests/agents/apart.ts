import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import type { HarnessOptions } from "../../src/harness.js";
import type { AgentBench } from "./agent-bench.js";

/** A run in a process of its own. */
export interface RunApart {
  /** Ends it as a power loss would. */
  kill(): void;
  /** What it printed, once it has ended. */
  readonly ended: Promise<string>;
}

/** Starts a run in a process of its own, in which every name leads to this machine's loopback as well. */
export async function startApart(bench: AgentBench, options: Partial<HarnessOptions>): Promise<RunApart> {
  const { harness, sandbox, network } = bench;
  // The guest is found from where the program is.
  const program = fileURLToPath(new URL("../../dist/run-apart.mjs", import.meta.url));
  await build({
    entryPoints: [fileURLToPath(new URL("./run-apart.ts", import.meta.url))],
    outfile: program,
    bundle: true,
    ...{ platform: "node", format: "esm", target: "node20", logLevel: "error" },
    external: ["yaml", "@dagger.io/dagger", "@daytona/sdk", "@vercel/sandbox"],
  });
  const wanted = { repo: harness.repo, intent: "try it", sandboxType: "local", sandbox, network, ...options };
  const child = spawn(process.execPath, [program, JSON.stringify(wanted)], { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk: Buffer) => {
      output += chunk.toString("utf8");
    });
  }
  return {
    kill: () => void child.kill("SIGKILL"),
    ended: new Promise((resolve) => child.once("close", () => resolve(output))),
  };
}

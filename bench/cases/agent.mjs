import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { runHarness } from "../../dist/src/harness.js";
import { goal, interleave, p50, row, timed } from "../parts/measure.mjs";
import { start } from "../parts/processes.mjs";
import { repositoryOf } from "../parts/repositories.mjs";

const PROGRAM = fileURLToPath(new URL("../parts/turns-agent.mjs", import.meta.url));
const FEW = 20;

/**
 * What a run adds to a turn of a coding agent: the same program with and without the harness, which talks with a model through the proxy, runs a
 * command, and prints what Claude Code prints. A run of few turns is taken off one of many, so that only the turns count.
 */
export async function measure({ isQuick, scratch }) {
  const repo = await repositoryOf(20, scratch);
  const many = isQuick ? 120 : 420;
  const model = createServer((incoming, response) =>
    incoming.resume().once("end", () => response.end("x".repeat(2000))),
  );
  model.listen(0, "127.0.0.1");
  await once(model, "listening");
  const { port } = model.address();
  const sandbox = await sandboxWith(join(scratch, "bin"));
  const runs = {
    harness: (turns) => inHarness(repo, scratch, sandbox, port, turns),
    own: (turns) => alone(port, turns),
  };
  const perTurn = async (run) => (-(await run(FEW)) + (await run(many))) / (many - FEW);
  try {
    const samples = await interleave(
      { harness: () => perTurn(runs.harness), own: () => perTurn(runs.own) },
      { rounds: isQuick ? 3 : 10 },
    );
    const [ours, other] = [row("a turn in a run", samples.harness), row("the agent's own turn", samples.own)];
    const value = Math.max(0, p50(samples.harness) - p50(samples.own));
    return {
      rows: [ours, other],
      goals: [goal("harness, each turn of an agent over its own time", { value, unit: "ms", atMost: 10, ours, other })],
      notes: ["a turn is a request of 20 KB to a model on this machine, a command, and three events"],
    };
  } finally {
    model.close();
    model.closeAllConnections();
  }
}

async function sandboxWith(bin) {
  await mkdir(bin, { recursive: true });
  await writeFile(join(bin, "claude"), `#!/bin/sh\nexec '${process.execPath}' '${PROGRAM}' "$@"\n`, { mode: 0o755 });
  const node = dirname(process.execPath);
  const mounts = [bin, dirname(PROGRAM), ...(node.startsWith("/usr/") ? [] : [node])].map((source) => ({ source }));
  return { mounts, env: { PATH: `${bin}:${node}:/usr/bin:/bin` } };
}

async function inHarness(repo, scratch, sandbox, port, turns) {
  const report = await runHarness({
    blueprint: {
      name: "turns",
      nodes: [{ id: "work", kind: "agent", agent: "claude-code", prompt: `${turns} turns` }],
    },
    ...{ repo, intent: "measure", sandboxType: "local", keep: "never", out: join(scratch, "runs"), sandbox },
    secretSource: { ANTHROPIC_API_KEY: "not needed" },
    env: { MODEL_URL: `http://host-loopback:${port}/` },
    network: { allow: [`host-loopback:${port}`] },
  });
  const [{ status, agent, durationMs }] = report.nodes;
  if (status !== "success" || agent.turns !== turns) throw new Error(JSON.stringify(report.nodes));
  return durationMs;
}

function alone(port, turns) {
  return timed(async () => {
    const running = start(process.execPath, [PROGRAM], {
      env: { ...process.env, MODEL_URL: `http://127.0.0.1:${port}/` },
      maxBuffer: 1 << 26,
    });
    running.child.stdin.end(`${turns} turns`);
    await running;
  });
}

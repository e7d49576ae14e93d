import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { readEvents, runHarness } from "../../dist/src/harness.js";
import { createLocalSandbox } from "../../dist/src/index.js";
import { goal, p50, row, timed } from "../parts/measure.mjs";
import { start as command } from "../parts/processes.mjs";
import { git, repositoryOf } from "../parts/repositories.mjs";

const NODES = 20;

/** The overhead of the harness over the sandbox: for each node, for many runs at once, and for a node that prints a lot. */
export async function measure({ isQuick, scratch }) {
  const repo = await repositoryOf(20, scratch);
  const rounds = isQuick ? 3 : 10;
  const [perNode, perExec] = await overhead(repo, scratch, rounds, { run: ["true"] });
  const write = "echo x >> changed.txt; echo x >> made.txt";
  const [perChange, perWrite] = await overhead(repo, scratch, rounds, { run: ["sh", "-c", write] });
  const { took, wrong, count } = await manyAtOnce(repo, scratch, isQuick ? 10 : 50);
  const memory = [];
  for (let round = 0; round < (isQuick ? 3 : 10); round++) memory.push(await longLog(repo, scratch));
  const rows = [
    row("a node of one command", perNode),
    row("the sandbox's own exec of it", perExec),
    row("a node that changes two files, with the snapshot of them", perChange),
    row("the sandbox's own exec of that", perWrite),
    row(`${count} runs of three nodes at once`, [took]),
    row("memory beyond what was there, a log of 200 MB", memory, "MB"),
  ];
  const goals = [
    goal("harness, each node over the sandbox's own exec", {
      value: Math.max(0, rows[0].p50 - rows[1].p50),
      unit: "ms",
      atMost: 25,
      ours: rows[0],
      other: rows[1],
    }),
    goal("harness, each node that changes files over the sandbox's own exec", {
      value: Math.max(0, rows[2].p50 - rows[3].p50),
      unit: "ms",
      atMost: 25,
      ours: rows[2],
      other: rows[3],
    }),
    goal(`runs of ${count} at once that came out wrong`, { value: wrong, unit: "", atMost: 0 }),
    goal("memory for a log of 200 MB, the most of all runs", { value: Math.max(...memory), unit: "MB", atMost: 50 }),
  ];
  return {
    rows,
    goals,
    notes: [
      "memory is the highest of all runs, each in a process of its own: mostly what was read from the sandbox, of which V8 lets 32 MB wait for its collector",
      "every node is followed by a look at the files, one that changes some by a durable snapshot of them; what git has to look at itself (ignored files that are there, commits made inside, attributes) takes longer",
    ],
  };
}

async function overhead(repo, scratch, rounds, what) {
  const nodes = Array.from({ length: NODES }, (_, n) => ({ id: `n${n}`, kind: "command", ...what }));
  const [perNode, perExec] = [[], []];
  const sandbox = await createLocalSandbox({ repo });
  try {
    for (let round = 0; round < rounds; round++) {
      const report = await start(repo, scratch, { name: "short", nodes });
      const events = readEvents(join(scratch, "runs", report.runId, "events.jsonl"));
      const at = (type, which) => Date.parse(events[which](({ type: each }) => each === type).ts);
      perNode.push((at("checkpoint.saved", "findLast") - at("node.started", "find")) / NODES);
      const execs = [];
      for (let n = 0; n < NODES; n++) execs.push(await timed(() => sandbox.exec({ argv: what.run })));
      perExec.push(p50(execs));
    }
  } finally {
    await sandbox.teardown();
  }
  return [perNode, perExec];
}

async function manyAtOnce(repo, scratch, count) {
  const refs = await git(repo, "for-each-ref", "refs/heads");
  const blueprint = (n) => ({
    name: "many",
    nodes: [
      { id: "write", kind: "command", shell: `echo ${n} > mine.txt` },
      { id: "read", kind: "command", run: ["cat", "mine.txt"] },
      { id: "save", kind: "commit", message: "mine" },
    ],
  });
  let reports = [];
  const took = await timed(async () => {
    reports = await Promise.all(Array.from({ length: count }, (_, n) => start(repo, scratch, blueprint(n))));
  });
  const isRight = ({ runId, status, nodes }, n) => {
    const patch = readFileSync(join(scratch, "runs", runId, "changes.patch"), "utf8");
    return status === "success" && nodes[1].output === `${n}\n` && patch.includes(`+${n}\n`);
  };
  const wrong = reports.filter((report, n) => !isRight(report, n)).length;
  return { took, count, wrong: wrong + ((await git(repo, "for-each-ref", "refs/heads")) === refs ? 0 : 1) };
}

/** In a new process: one that has used much memory before would hide the cost of the log. */
async function longLog(repo, scratch) {
  const { stdout } = await command(process.execPath, [
    fileURLToPath(new URL("../parts/long-log.mjs", import.meta.url)),
    repo,
    join(scratch, "runs"),
  ]);
  return Number(stdout);
}

function start(repo, scratch, blueprint) {
  return runHarness({
    blueprint,
    repo,
    intent: "measure",
    sandboxType: "local",
    out: join(scratch, "runs"),
    keep: "never",
  });
}

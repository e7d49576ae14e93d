import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { type ExecResult, openSandbox, type Sandbox, SandboxError } from "glovebox";
import { type HostBait, layBait, processesWith } from "./demo/host.js";
import { attempt, type Outcome, printReport } from "./demo/report.js";

const ok = (result: ExecResult, expected: string): Outcome => ({
  asExpected: result.exitCode === 0 && result.stdout.trim() === expected,
  outcome: result.exitCode === 0 ? result.stdout : `exit ${result.exitCode}: ${result.stderr}`,
});
const failed = (result: ExecResult): Outcome => ({
  asExpected: result.exitCode !== 0 && !result.timedOut,
  outcome: result.exitCode === 0 ? `not refused: ${result.stdout}` : result.stderr,
});

async function showWork(sandbox: Sandbox): Promise<void> {
  await attempt("did", "echo hello", async () => ok(await sandbox.exec({ argv: ["echo", "hello"] }), "hello"));
  await attempt("did", "write notes.txt, then cat notes.txt", async () => {
    await sandbox.writeFile("notes.txt", "kept inside\n");
    return ok(await sandbox.exec({ argv: ["cat", "notes.txt"] }), "kept inside");
  });
  await attempt("did", "node, given a program on stdin", async () =>
    ok(await sandbox.exec({ argv: ["node", "-"], stdin: "console.log(6 * 7)" }), "42"),
  );
  await attempt("did", "start a server, ask it from a later exec", async () => {
    const listen = 'require("http").createServer((_, r) => r.end("served")).listen(8080, () => console.log("ready"))';
    await using server = await sandbox.spawn({ argv: ["node", "-e", listen] });
    await server.stdout.getReader().read();
    const ask = 'fetch("http://127.0.0.1:8080").then((r) => r.text()).then(console.log)';
    return ok(await sandbox.exec({ argv: ["node", "-e", ask] }), "served");
  });
}

async function showRefusals(sandbox: Sandbox, bait: HostBait): Promise<void> {
  const keys = join(homedir(), ".ssh");
  await attempt("refused", "cat /etc/shadow", async () => failed(await sandbox.exec({ argv: ["cat", "/etc/shadow"] })));
  await attempt("refused", "ls ~/.ssh of the host", async () => failed(await sandbox.exec({ argv: ["ls", keys] })));
  await attempt("refused", "read a file of the host", async () => {
    const result = await sandbox.exec({ argv: ["cat", bait.file] });
    const { asExpected, outcome } = failed(result);
    return { asExpected, outcome: outcome.replace(bait.directory, "…") };
  });
  await attempt("refused", "write a file on the host", async () => {
    const target = join(bait.directory, "was-here");
    await sandbox.exec({ argv: ["sh", "-c", `mkdir -p ${bait.directory}; echo x > ${target}`] });
    const usr = await sandbox.exec({ argv: ["touch", "/usr/was-here"] });
    const reached = existsSync(target) || existsSync("/usr/was-here");
    return { asExpected: !reached && usr.exitCode !== 0, outcome: reached ? "it is there" : usr.stderr };
  });
  await attempt("refused", 'writeFile("../outside.txt")', async () => {
    const error: unknown = await sandbox.writeFile("../outside.txt", "x").catch((caught: unknown) => caught);
    const code = error instanceof SandboxError ? error.code : undefined;
    return { asExpected: code === "path_confinement", outcome: code ?? "not refused" };
  });
  await attempt("refused", "reach a server of the host", async () => {
    const result = await sandbox.exec({ argv: ["node", "-e", connect("127.0.0.1", bait.port)] });
    return { ...failed(result), asExpected: result.exitCode === 3 && bait.connections() === 0 };
  });
  await attempt("refused", "reach the internet", async () => {
    const result = await sandbox.exec({ argv: ["node", "-e", connect("1.1.1.1", 443)] });
    return { ...failed(result), asExpected: result.exitCode === 3 };
  });
  await attempt("refused", "see processes of the host", async () => {
    const visible = await sandbox.shell("cat /proc/[0-9]*/cmdline | tr '\\0' ' '");
    const seen = visible.stdout.includes(bait.secret);
    return { asExpected: !seen && visible.stdout !== "", outcome: seen ? "seen" : "only its own are there" };
  });
  await attempt("refused", "find a secret of the host's environment", async () => {
    const visible = await sandbox.shell("env; cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'");
    const seen = visible.stdout.includes(bait.secret) || visible.stdout.includes("DEMO_API_KEY");
    return { asExpected: !seen && visible.stdout.includes("PATH="), outcome: seen ? "found" : "not there" };
  });
}

async function showDeadline(sandbox: Sandbox, bait: HostBait): Promise<void> {
  await attempt("refused", "outlive a deadline of 1 s, with setsid", async () => {
    const name = `run${bait.secret}`;
    const script = `setsid sh -c 'sleep 9999; :' ${name} & sh -c 'sleep 9999; :' ${name}`;
    const ended = sandbox.exec({ argv: ["sh", "-c", script], timeout: 1_000 });
    let most = 0;
    let isRunning = true;
    const result = ended.finally(() => {
      isRunning = false;
    });
    while (isRunning) {
      most = Math.max(most, (await processesWith(name)).length);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    const { timedOut, exitCode } = await result;
    const left = await processesWith(name);
    const asExpected = timedOut && exitCode === 137 && most >= 2 && left.length === 0;
    return { asExpected, outcome: `${timedOut ? "killed" : "not killed"}, ${left.length} processes left` };
  });
}

/** A program that ends with 3 when it cannot connect. */
function connect(host: string, port: number): string {
  const fail = "(e) => { console.error(e.code); process.exit(3) }";
  return `require("net").connect(${port}, "${host}", () => process.exit(0)).on("error", ${fail})`;
}

async function compareSpeed(sandbox: Sandbox): Promise<string> {
  const bare = promisify(execFile);
  const [inside, outside]: [number[], number[]] = [[], []];
  for (let round = 0; round < 60; round++) {
    inside.push(await time(() => sandbox.exec({ argv: ["true"] })));
    outside.push(await time(() => bare("true")));
  }
  const [ours, theirs] = [median(inside.slice(10)), median(outside.slice(10))];
  const detail = `${ours.toFixed(2)} ms against ${theirs.toFixed(2)} ms, p50 of 50`;
  return `An exec inside takes ${(ours / theirs).toFixed(2)} times as long as a bare execFile (${detail}).`;
}

async function time(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

function median(values: number[]): number {
  return values.sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(1));

try {
  await using bait = await layBait();
  const began = performance.now();
  await using sandbox = await openSandbox({ backend: "local" });
  const opened = (performance.now() - began).toFixed(0);
  console.log(
    `\nA sandbox on an empty directory (${sandbox.backend}, ${sandbox.capabilities.isolation}), open in ${opened} ms`,
  );
  await showWork(sandbox);
  await showRefusals(sandbox, bait);
  await showDeadline(sandbox, bait);
  const speed = await compareSpeed(sandbox);
  const isRight = printReport();
  console.log(`\n${speed}`);
  console.log(isRight ? "Everything went as it must." : "Something did not go as it must: see WRONG above.");
  if (!isRight) process.exitCode = 1;
} catch (error) {
  if (!(error instanceof SandboxError)) throw error;
  console.error(`\n${error.code}: ${error.message}${error.hint ? `\n${error.hint}` : ""}`);
  process.exitCode = 1;
}

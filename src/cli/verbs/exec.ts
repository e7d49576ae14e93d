import type { ProcessExit } from "../../../contracts/types.js";
import type { Sandbox } from "../../sandbox/types.js";
import { openSandbox, WORKSPACE, withPreferredWorkDir, withUserConfig } from "../../sandbox.js";
import type { Invocation } from "../invocation.js";
import { explainAbsent } from "../kept-sandbox.js";
import { printPublished, publishedPorts } from "../published-ports.js";
import { runProcess } from "../run-process.js";
import { timeoutOf, toOpenOptions } from "../sandbox-options.js";
import { CollectingSink, createSink } from "../terminal.js";

const TIMED_OUT = 124;

/** `glovebox exec`: opens a sandbox, runs one command in it and removes it. */
export async function run(invocation: Invocation): Promise<number> {
  const { flags, screen, interruption } = invocation;
  const timeout = timeoutOf(flags);
  const options = await withPreferredWorkDir(await withUserConfig(toOpenOptions(invocation)), WORKSPACE);
  const sandbox = await screen.during("opening the sandbox", () =>
    openSandbox(options).catch((error: unknown) => explainAbsent(error, options)),
  );
  let exit: ProcessExit;
  try {
    await printPublished(sandbox, screen);
    exit = flags.has("json")
      ? await runToJson(sandbox, invocation, timeout)
      : await runToScreen(sandbox, invocation, timeout);
  } finally {
    await screen.during("closing the sandbox", () => sandbox.teardown());
  }
  if (interruption.ending === undefined) {
    if (exit.timedOut) await screen.printNote(`the command was killed at its timeout of ${flags.text("timeout")}`);
    if (exit.oomKilled === true) await screen.printNote("the command was killed at its memory limit");
  }
  if (flags.has("keep") && !flags.has("json")) {
    const reference = sandbox.name ?? sandbox.id;
    await screen.printNote(`kept ${reference}; glovebox exec --id ${reference} -- … opens it again`);
  }
  return exit.timedOut ? TIMED_OUT : exit.exitCode;
}

async function runToScreen(sandbox: Sandbox, invocation: Invocation, timeout: Timeout): Promise<ProcessExit> {
  const { flags, screen } = invocation;
  const isRaw = flags.has("raw");
  return await start(sandbox, invocation, timeout, {
    stdout: createSink(screen, screen.stdout, isRaw),
    stderr: createSink(screen, screen.stderr, isRaw),
  });
}

async function runToJson(sandbox: Sandbox, invocation: Invocation, timeout: Timeout): Promise<ProcessExit> {
  const [stdout, stderr] = [new CollectingSink(), new CollectingSink()];
  const published = await publishedPorts(sandbox);
  const exit = await start(sandbox, invocation, timeout, { stdout, stderr });
  const [out, err] = [stdout.result, stderr.result];
  const { id, name, backend, workDir, hostDir } = sandbox;
  await invocation.screen.printJson({
    ...exit,
    stdout: out.text,
    stderr: err.text,
    truncated: { stdout: out.truncated, stderr: err.truncated },
    bytes: { stdout: out.bytes, stderr: err.bytes },
    sandbox: { id, ...(name !== undefined && { name }), backend, workDir, ...(hostDir !== undefined && { hostDir }) },
    ...(published.length > 0 && { published }),
  });
  return exit;
}

type Timeout = ReturnType<typeof timeoutOf>;
type Streams = Pick<Parameters<typeof runProcess>[1], "stdout" | "stderr">;

async function start(
  sandbox: Sandbox,
  { argv, flags, interruption }: Invocation,
  timeout: Timeout,
  streams: Streams,
): Promise<ProcessExit> {
  // On a terminal the command would swallow what you type for the next one; use `shell` for an interactive program.
  const withStdin = process.stdin.isTTY !== true;
  const child = await sandbox.spawn({
    argv,
    stdin: withStdin ? "pipe" : "none",
    ...timeout,
    ...(flags.has("combined") && { output: "combined" }),
  });
  return await runProcess(child, { ...streams, ...(withStdin && { stdin: process.stdin }) }, interruption);
}

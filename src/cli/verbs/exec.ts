import type { ProcessExit, SandboxEvent } from "../../../contracts/types.js";
import type { Sandbox } from "../../sandbox/types.js";
import { WORKSPACE, withPreferredWorkDir, withUserConfig } from "../../sandbox.js";
import { hereOf, startHere, withHere } from "../here.js";
import type { Invocation } from "../invocation.js";
import { createNameWatch, type NameWatch } from "../name-watch.js";
import { type Supervision, superviseNetwork } from "../network-supervision.js";
import { openWithFiles } from "../open-with-files.js";
import { printPublished, publishedPorts } from "../published-ports.js";
import { runProcess } from "../run-process.js";
import { callOptionsOf, toOpenOptions } from "../sandbox-options.js";
import { CollectingSink, createSink } from "../terminal.js";

const TIMED_OUT = 124;

/** `glovebox exec`: opens a sandbox, runs one command in it and removes it. */
export async function run(invocation: Invocation): Promise<number> {
  const { flags, screen, interruption } = invocation;
  const call = callOptionsOf(flags);
  const here = hereOf(flags);
  const supervision = superviseNetwork(invocation);
  const options = await withPreferredWorkDir(
    await withUserConfig(withHere({ ...(await toOpenOptions(invocation)), ...supervision.options }, here)),
    WORKSPACE,
  );
  const onEvent = (event: SandboxEvent): void => {
    if (event.type === "warning") supervision.hear(event.message);
    options.onEvent?.(event);
  };
  const sandbox = await openWithFiles(invocation, { ...options, onEvent }, here);
  let exit: ProcessExit;
  let watch: NameWatch;
  try {
    watch = await createNameWatch(flags, sandbox);
    await printPublished(sandbox, screen);
    exit = flags.has("json")
      ? await runToJson(sandbox, invocation, call, watch)
      : await runToScreen(sandbox, invocation, call, watch, supervision);
  } finally {
    supervision.close();
    await screen.during("closing the sandbox", () => sandbox.teardown());
  }
  await supervision.finish();
  if (interruption.ending === undefined) {
    if (exit.timedOut) await screen.printNote(`the command was killed at its timeout of ${flags.text("timeout")}`);
    const hint = watch.hintFor(exit);
    if (hint !== undefined && !flags.has("json")) await screen.printNote(hint);
    if (exit.oomKilled === true) await screen.printNote("the command was killed at its memory limit");
  }
  if (flags.has("keep") && !flags.has("json")) {
    const reference = sandbox.name ?? sandbox.id;
    await screen.printNote(`kept ${reference}; glovebox exec --id ${reference} -- … opens it again`);
  }
  return exit.timedOut ? TIMED_OUT : exit.exitCode;
}

async function runToScreen(
  sandbox: Sandbox,
  invocation: Invocation,
  call: CallOptions,
  watch: NameWatch,
  supervision: Supervision,
): Promise<ProcessExit> {
  const { flags, screen } = invocation;
  const how = { isRaw: flags.has("raw"), colours: true };
  return await start(sandbox, invocation, call, {
    stdout: watch.over(supervision.over(createSink(screen, screen.stdout, how))),
    stderr: watch.over(supervision.over(createSink(screen, screen.stderr, how))),
  });
}

async function runToJson(
  sandbox: Sandbox,
  invocation: Invocation,
  call: CallOptions,
  watch: NameWatch,
): Promise<ProcessExit> {
  const [stdout, stderr] = [new CollectingSink(), new CollectingSink()];
  const published = await publishedPorts(sandbox);
  const exit = await start(sandbox, invocation, call, { stdout: watch.over(stdout), stderr: watch.over(stderr) });
  const hint = watch.hintFor(exit);
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
    ...(hint !== undefined && { hint }),
  });
  return exit;
}

type CallOptions = ReturnType<typeof callOptionsOf>;
type Streams = Pick<Parameters<typeof runProcess>[1], "stdout" | "stderr">;

async function start(
  sandbox: Sandbox,
  { argv, flags, interruption }: Invocation,
  call: CallOptions,
  streams: Streams,
): Promise<ProcessExit> {
  // On a terminal the command would swallow what you type for the next one; use `shell` for an interactive program.
  const withStdin = process.stdin.isTTY !== true;
  const { cwd, ...rest } = call;
  const child = await sandbox.spawn({
    ...rest,
    ...startHere(hereOf(flags), cwd),
    argv,
    stdin: withStdin ? "pipe" : "none",
    ...(flags.has("combined") && { output: "combined" }),
  });
  return await runProcess(child, { ...streams, ...(withStdin && { stdin: process.stdin }) }, interruption);
}

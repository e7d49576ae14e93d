import { WORKSPACE, withPreferredWorkDir, withUserConfig } from "../../sandbox.js";
import { UsageError } from "../commands.js";
import { hereOf, startHere, withHere } from "../here.js";
import type { Invocation } from "../invocation.js";
import { openWithFiles } from "../open-with-files.js";
import { printPublished } from "../published-ports.js";
import { runProcess } from "../run-process.js";
import { callOptionsOf, toOpenOptions } from "../sandbox-options.js";
import { createSink, RawTerminal } from "../terminal.js";

const TIMED_OUT = 124;
const ANY_SHELL = ["/bin/sh", "-c", "if command -v bash >/dev/null 2>&1; then exec bash; else exec sh; fi"];

/** `glovebox shell`: a terminal in a sandbox. */
export async function run(invocation: Invocation): Promise<number> {
  const { argv, flags, screen, interruption } = invocation;
  if (process.stdin.isTTY !== true || process.stdout.isTTY !== true) {
    throw new UsageError("shell needs a terminal as standard input and output", "without one, use glovebox exec -- …");
  }
  const { cwd, ...rest } = callOptionsOf(flags);
  const here = hereOf(flags);
  const options = await withPreferredWorkDir(
    await withUserConfig(withHere(await toOpenOptions(invocation), here)),
    WORKSPACE,
  );
  const env = { ...terminalName(), ...options.env };
  const sandbox = await openWithFiles(invocation, { ...options, env }, here);
  try {
    await printPublished(sandbox, screen);
    const terminal = new RawTerminal(process.stdin, process.stdout);
    const child = await sandbox.spawn({
      ...rest,
      ...startHere(here, cwd),
      argv: argv.length > 0 ? argv : ANY_SHELL,
      pty: terminal.size,
    });
    let exit: Awaited<ReturnType<typeof runProcess>>;
    try {
      terminal.enter((cols, rows) => void child.resize?.(cols, rows).catch(() => undefined));
      const stdout = createSink(screen, screen.stdout, { isRaw: true });
      // An interactive shell ignores SIGINT and SIGTERM.
      exit = await runProcess(child, { stdout, stderr: stdout, stdin: process.stdin }, interruption, "SIGHUP");
    } finally {
      terminal.leave();
    }
    if (exit.timedOut) await screen.printNote(`the shell was killed at its timeout of ${flags.text("timeout")}`);
    return exit.timedOut ? TIMED_OUT : exit.exitCode;
  } finally {
    await screen.during("closing the sandbox", () => sandbox.teardown());
    const reference = sandbox.name ?? sandbox.id;
    if (flags.has("keep")) await screen.printNote(`kept ${reference}; glovebox shell --id ${reference} opens it again`);
  }
}

/** The value of TERM if it is a plain name: programs in the sandbox make it part of a path. */
function terminalName(): { TERM: string } {
  const name = process.env["TERM"] ?? "";
  return { TERM: /^[A-Za-z0-9][A-Za-z0-9._+-]*$/.test(name) ? name : "dumb" };
}

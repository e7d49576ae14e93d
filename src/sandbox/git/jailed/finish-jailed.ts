import { SandboxError } from "../../../../contracts/errors.js";
import { readUpTo } from "../../../util/read-up-to.js";
import type { DriverProcess } from "../../types.js";

const MAX_OUTPUT = 64 << 20;

/** What a jailed git answered. */
export interface JailedGitResult {
  exitCode: number;
  stdout: Uint8Array;
  stderr: string;
}

/** Waits for a program in a jail and returns its output. */
export async function finishJailed(
  git: DriverProcess,
  stdin?: Uint8Array,
  signal?: AbortSignal,
): Promise<JailedGitResult> {
  const kill = (): void => void git.kill("SIGKILL").catch(() => undefined);
  signal?.addEventListener("abort", kill, { once: true });
  try {
    if (signal?.aborted === true) kill();
    const [stdout, stderr, exit] = await Promise.all([
      readUpTo(git.stdout, MAX_OUTPUT, kill),
      readUpTo(git.stderr, MAX_OUTPUT, kill),
      git.wait(),
      stdin === undefined ? undefined : git.writeStdin(stdin).then(() => git.closeStdin()),
    ]);
    if (signal?.aborted === true) throw new SandboxError("aborted", "Aborted while git ran");
    if (exit.timedOut === true)
      throw new SandboxError("unavailable", "git did not finish in time with the files of the sandbox");
    if (!stdout.isWhole || !stderr.isWhole) {
      throw new SandboxError("limit_exceeded", `git said more than ${MAX_OUTPUT} bytes`);
    }
    return { exitCode: exit.exitCode, stdout: stdout.bytes, stderr: stderr.bytes.toString("utf8") };
  } finally {
    signal?.removeEventListener("abort", kill);
  }
}

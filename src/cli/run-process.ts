import type { ProcessExit, SandboxProcess } from "../../contracts/types.js";
import type { Interruption, Sink } from "./terminal.js";

/** How long a command may take to end by itself after an interrupt. */
const GRACE = 2_000;

/**
 * Copies the streams of a process until it has ended. On an interrupt, sends the process the same signal, or `endSignal`,
 * and SIGKILL a little later.
 */
export async function runProcess(
  child: SandboxProcess,
  streams: { stdout: Sink; stderr: Sink; stdin?: AsyncIterable<Uint8Array> },
  interruption: Interruption,
  endSignal?: string,
): Promise<ProcessExit> {
  let killer: NodeJS.Timeout | undefined;
  const unsubscribe = interruption.onEnd((ending) => {
    // Started without Glovebox, the command would have got the same signal, even if its reader went away.
    void child.kill(endSignal ?? ending);
    killer = setTimeout(() => void child.kill("SIGKILL"), GRACE);
  });
  const feed = streams.stdin === undefined ? undefined : feedStdin(child, streams.stdin);
  try {
    const [exit] = await Promise.all([
      child.wait(),
      drain(child.stdout, streams.stdout),
      drain(child.stderr, streams.stderr),
    ]);
    return exit;
  } finally {
    unsubscribe();
    clearTimeout(killer);
    feed?.stop();
  }
}

async function drain(stream: ReadableStream<Uint8Array>, sink: Sink): Promise<void> {
  // At the end of a loop over the stream Node releases the reader, and makes an error with a stack for that, which takes a millisecond.
  const reader = stream.getReader();
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) await sink.write(next.value);
  } catch (error) {
    await reader.cancel(error).catch(() => undefined);
    throw error;
  }
  await sink.end();
}

/** Copies standard input as fast as the process reads it. An input that can't be read counts as ended. */
function feedStdin(child: SandboxProcess, stdin: AsyncIterable<Uint8Array>): { stop(): void } {
  const writer = child.stdin?.getWriter();
  let stopped = false;
  const feed = async (): Promise<void> => {
    for await (const chunk of stdin) {
      if (stopped) return;
      await writer?.write(chunk);
    }
  };
  void feed()
    .catch(() => undefined)
    .then(() => writer?.close())
    .catch(() => undefined);
  return {
    stop: () => {
      stopped = true;
    },
  };
}

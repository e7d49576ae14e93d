import type { ProcessExit, SandboxProcess } from "../../contracts/types.js";
import type { Interruption, Sink } from "./terminal.js";

/** How long a command may take to end by itself once this program was told to. */
const GRACE = 2_000;

/**
 * Moves the streams of a process until it has ended. When this program is to end, the process is too: by the signal that
 * this program got, or by `farewell`, and by SIGKILL a little later.
 */
export async function runProcess(
  child: SandboxProcess,
  streams: { stdout: Sink; stderr: Sink; stdin?: AsyncIterable<Uint8Array> },
  interruption: Interruption,
  farewell?: string,
): Promise<ProcessExit> {
  let killer: NodeJS.Timeout | undefined;
  const forget = interruption.onEnd((ending) => {
    // Without us the command would have got the same signal, also when its reader went away.
    void child.kill(farewell ?? ending);
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
    forget();
    clearTimeout(killer);
    feed?.stop();
  }
}

async function drain(stream: ReadableStream<Uint8Array>, sink: Sink): Promise<void> {
  for await (const chunk of stream) await sink.write(chunk);
  await sink.end();
}

/** Hands standard input on, as fast as the process reads. An input that cannot be read counts as one that has ended. */
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

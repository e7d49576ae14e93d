import type { ProcessExit, SandboxProcess } from "../../contracts/types.js";
import { createLocalSandbox } from "../../src/sandbox/backends/local.js";
import type { Sandbox } from "../../src/sandbox/types.js";

/** A program on a terminal of its own, and all that it has written to it. */
export interface TerminalRun {
  readonly process: SandboxProcess;
  /** Resolves once the terminal shows the text, from this place on; gives the place behind it. */
  shows(text: string, from?: number): Promise<number>;
  type(keys: string): Promise<void>;
  /** Resolves once the program has ended and all its output is there. */
  ended: Promise<ProcessExit & { output: string }>;
}

/** Terminals to run programs of the host on: our own sandbox without walls has them. */
export interface Terminals extends AsyncDisposable {
  run(
    argv: readonly string[],
    env: Record<string, string>,
    size?: { cols: number; rows: number },
  ): Promise<TerminalRun>;
}

/** Opens a source of terminals. */
export async function openTerminals(): Promise<Terminals> {
  const sandbox: Sandbox = await createLocalSandbox({ isolation: "none" });
  return {
    async run(argv, env, size = { cols: 80, rows: 24 }) {
      return watch(await sandbox.spawn({ argv, env, pty: size }));
    },
    [Symbol.asyncDispose]: () => sandbox.teardown(),
  };
}

function watch(process: SandboxProcess): TerminalRun {
  let output = "";
  const waiting = new Set<() => void>();
  const writer = process.stdin?.getWriter();
  const decoder = new TextDecoder();
  const read = async (): Promise<void> => {
    for await (const chunk of process.stdout) {
      output += decoder.decode(chunk, { stream: true });
      for (const look of waiting) look();
    }
  };
  const ended = Promise.all([process.wait(), read()]).then(([exit]) => ({ ...exit, output }));
  ended.catch(() => undefined);
  const shows = (text: string, from = 0): Promise<number> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        const at = output.indexOf(text, from);
        if (at === -1) return;
        waiting.delete(look);
        resolve(at + text.length);
      };
      waiting.add(look);
      look();
      const over = (): void => reject(new Error(`it ended without ${JSON.stringify(text)}: ${JSON.stringify(output)}`));
      ended.then(over, over);
    });
  return { process, shows, ended, type: async (keys) => void (await writer?.write(Buffer.from(keys))) };
}

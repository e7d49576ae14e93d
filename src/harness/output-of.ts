import { spawn } from "node:child_process";

const MAX_CHARACTERS = 16_384;

/** What a command of this machine prints; undefined if it fails, prints too much, or is not done in time. It runs in `/`, without a terminal. */
export async function outputOf(
  [program = "", ...args]: readonly string[],
  {
    env,
    signal,
    deadline,
  }: { env: Readonly<Record<string, string>>; signal?: AbortSignal | undefined; deadline: number },
): Promise<string | undefined> {
  return await new Promise((resolve) => {
    // A group of its own, so that what the tool has started ends with it.
    const child = spawn(program, args, { cwd: "/", env, detached: true, stdio: ["ignore", "pipe", "ignore"] });
    let text = "";
    const end = (output: string | undefined): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", stop);
      resolve(output);
    };
    const stop = (): void => {
      if (child.pid !== undefined) killGroup(child.pid);
      child.stdout.destroy();
      child.unref();
      end(undefined);
    };
    // A timer of its own: a signal made of others may be collected before it fires.
    const timer = setTimeout(stop, deadline);
    signal?.addEventListener("abort", stop);
    child.stdout.setEncoding("utf8").on("data", (piece: string) => {
      text += piece;
      if (text.length > MAX_CHARACTERS) stop();
    });
    child.on("error", () => end(undefined));
    child.on("close", (code) => end(code === 0 ? text : undefined));
  });
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // It is gone already.
  }
}

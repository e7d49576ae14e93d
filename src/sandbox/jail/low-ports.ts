import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { guestBinary } from "../guest.js";

const run = promisify(execFile);
const TIMEOUT = 10_000;

/** Lets every program in a jail listen on ports below 1024 of its own network. `pid`: the process that `startJailedGuest` started. */
export async function openLowPorts(pid: number): Promise<void> {
  try {
    await run(guestBinary(), ["open-low-ports", String(pid)], { timeout: TIMEOUT, env: {} });
  } catch (error) {
    const { stderr, message } = error as Error & { stderr?: string };
    throw new Error(stderr?.trim().replace(/^glovebox: /, "") || message, { cause: error });
  }
}

import { existsSync, rmSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import type { RunDirectory } from "./run-directory.js";

const PAUSE = 250;
const FILE = "stop";

/** Asks a run to stop cleanly, whichever process it is in. */
export async function requestStop(directory: RunDirectory): Promise<void> {
  await writeFile(directory.state(FILE), "");
}

/** Calls back when somebody asks the run to stop. Returns what ends the watch. */
export function watchStopRequest(directory: RunDirectory, onStop: () => void): () => void {
  const path = directory.state(FILE);
  rmSync(path, { force: true });
  const timer = setInterval(() => {
    if (!existsSync(path)) return;
    clearInterval(timer);
    onStop();
  }, PAUSE);
  timer.unref();
  return () => {
    clearInterval(timer);
    rmSync(path, { force: true });
  };
}

import { type Child, startChild } from "../run/compiled.js";

/** Processes that only reap, as many as are asked at one time; each goes from one place to the next. */
export interface Reapers {
  /** Has one of them reap the place that these variables name; gives its report. */
  reap(env: Readonly<Record<string, string>>, options?: object): Promise<unknown>;
  close(): void;
}

/** Starts none yet: the first that is needed is started then. A process of its own for each call would mostly start. */
export function createReapers(directory: string): Reapers {
  const all: Child[] = [];
  const free: Child[] = [];
  return {
    async reap(env, options = {}) {
      const reaper = free.pop() ?? startChild(directory, "reaper.mjs", []);
      if (!all.includes(reaper)) all.push(reaper);
      reaper.tell(JSON.stringify({ env, options }));
      const report = JSON.parse(await reaper.line());
      free.push(reaper);
      return report;
    },
    close() {
      for (const reaper of all) reaper.kill();
    },
  };
}

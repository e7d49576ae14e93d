import type { ProcessHandle, ProcessOutput, ReadOutputOptions } from "../../contracts/types.js";
import type { Sandbox } from "../../src/sandbox/types.js";
import { change } from "../support/change.js";
import type { Mutant } from "./mutant.js";

/** Breaks the handles that a sandbox gives away. */
function handles(alter: (process: ProcessHandle) => Partial<ProcessHandle>): (sandbox: Sandbox) => Sandbox {
  const broken = (process: ProcessHandle): ProcessHandle => change(process, alter(process));
  return (sandbox) =>
    change(sandbox, {
      process: async (id) => broken(await sandbox.process(id)),
      processes: async () => (await sandbox.processes()).map(broken),
    });
}

function reads(
  alter: (read: ProcessHandle["read"], opts: ReadOutputOptions) => Promise<ProcessOutput>,
): (sandbox: Sandbox) => Sandbox {
  return handles((process) => ({ read: (opts = {}) => alter((given) => process.read(given), opts) }));
}

/** Mutants of the table of processes. */
export const processMutants: readonly Mutant[] = [
  {
    name: "forgets a process that has ended",
    caught: "processes.list",
    because: /^the first after its end: expected/,
    sandbox: (sandbox) =>
      change(sandbox, {
        processes: async () => (await sandbox.processes()).filter(({ state }) => state === "running"),
      }),
  },
  {
    name: "shows the state of a process as it was",
    caught: "processes.list",
    because: /^the handle from before its end: expected/,
    sandbox: handles(({ state, exit }) => ({ state, exit })),
  },
  {
    name: "reads from one byte after the cursor",
    caught: "processes.read",
    because: /^two bytes after the second: expected/,
    sandbox: reads((read, { cursor = 0, ...opts }) => read({ ...opts, cursor: cursor === 0 ? 0 : cursor + 1 })),
  },
  {
    name: "does not wait for output",
    caught: "processes.read",
    because: /^a read that waited returned nothing/,
    sandbox: reads((read, { wait: _, ...opts }) => read(opts)),
  },
  {
    name: "reads both streams, whichever is asked for",
    caught: "processes.read",
    because: /^stdout from its third byte, after the end: expected/,
    sandbox: reads((read, { stream: _, ...opts }) => read(opts)),
  },
  {
    name: "does not tell how much output is gone",
    caught: "processes.dropped",
    because: /^bytes, cursor and missed: expected/,
    sandbox: reads(async (read, opts) => ({ ...(await read(opts)), missed: 0 })),
  },
  {
    name: "makes a process in the background wait for a reader",
    caught: "processes.dropped",
    because: /^the case: no result within/,
    patience: 6_000,
    sandbox: (sandbox) => change(sandbox, { spawn: ({ background: _, ...opts }) => sandbox.spawn(opts) }),
  },
  {
    name: "kills a process when somebody detaches from it",
    caught: "processes.attach",
    because: /^state after the disposal: expected/,
    sandbox: handles((process) => ({
      async attach() {
        const attached = await process.attach();
        return change(attached, {
          async [Symbol.asyncDispose]() {
            await attached.kill("SIGKILL");
            await attached.wait();
          },
        });
      },
    })),
  },
  {
    name: "takes a cursor beyond the end",
    caught: "processes.bad-input",
    because: /^a cursor beyond the end: expected invalid_argument, but it resolved/,
    sandbox: reads(async (read, opts) => {
      const { cursor: end } = await read({ ...(opts.stream && { stream: opts.stream }) });
      return await read({ ...opts, cursor: Math.min(opts.cursor ?? 0, end) });
    }),
  },
];

import type { Driver, DriverProcess } from "../../src/sandbox/types.js";
import { change } from "../support/change.js";
import type { Mutant } from "./mutant.js";
import { Tap } from "./tap.js";

/** Breaks the process that a start gives. */
function processes(alter: (process: DriverProcess) => Partial<DriverProcess>): (driver: Driver) => Driver {
  return (driver) =>
    change(driver, {
      async start(spec) {
        const process = await driver.start(spec);
        return change(process, alter(process));
      },
    });
}

/** Mutants that lose, mix up or hoard what a command writes. */
export const outputMutants: readonly Mutant[] = [
  {
    name: "drops stderr",
    caught: "exec.output.separate",
    because: /^stdout and stderr: expected .*got \[ 'out1\\nout2\\nout3\\n', '' \]/,
    driver: processes(({ stderr }) => ({ stderr: nothingOf(stderr) })),
  },
  {
    name: "writes stderr to stdout",
    caught: "exec.output.separate",
    because: /^stdout and stderr: expected/,
    driver: processes(({ stdout, stderr }) => ({ stdout: joined(stdout, stderr), stderr: nothingOf([]) })),
  },
  {
    name: "keeps only the first 64 KiB of a stream",
    caught: "exec.output.exact",
    because: /^bytes: expected/,
    driver: processes(({ stdout }) => ({ stdout: firstOf(stdout) })),
  },
  {
    name: "does not tell how much it has left out",
    caught: "exec.output.cap",
    because: /^bytes: expected/,
    driver: processes((process) => ({
      async wait() {
        const { leftOut: _, ...exit } = await process.wait();
        return exit;
      },
    })),
  },
  {
    name: "combines two pipes instead of having one",
    caught: "exec.combined.order",
    because: /^stdout is not in order/,
    driver: (driver) =>
      change(driver, {
        async start({ combined, ...spec }) {
          const process = await driver.start(spec);
          const { stdout, stderr } = process;
          return combined === true
            ? change(process, { stdout: joined(stdout, stderr), stderr: nothingOf([]) })
            : process;
        },
      }),
  },
  {
    name: "does not combine outputs",
    caught: "spawn.combined",
    because: /^stdout is not in order/,
    driver: (driver) => change(driver, { start: ({ combined: _, ...spec }) => driver.start(spec) }),
  },
  {
    name: "loses partial output",
    caught: "deadline.partial-output",
    because: /^stdout is not whole$/,
    driver: processes((process) => ({ stdout: unlessKilled(process) })),
  },
  {
    name: "reads as fast as it can, whoever listens",
    caught: "exec.output.back-pressure",
    because: /MiB to a consumer that took one piece$/,
    driver: processes(({ stdout }) => ({ stdout: new Tap(stdout) })),
  },
  {
    name: "mixes up the outputs of commands that run together",
    caught: "exec.concurrency",
    because: /^stdout of command \d+: expected/,
    driver(driver) {
      const running = new Set<Tap>();
      return change(driver, {
        async start(spec) {
          const process = await driver.start(spec);
          const own = new Tap(process.stdout, (chunk) => {
            const [oldest = own] = running;
            oldest.push(chunk);
          });
          running.add(own);
          void process.wait().finally(() => running.delete(own));
          return change(process, { stdout: own });
        },
      });
    },
  },
];

async function* nothingOf(source: AsyncIterable<Uint8Array> | []): AsyncGenerator<Uint8Array> {
  for await (const chunk of source) if (chunk.length < 0) yield chunk;
}

async function* firstOf(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let room = 65_536;
  for await (const chunk of source) {
    if (room > 0) yield chunk.subarray(0, room);
    room -= chunk.length;
  }
}

async function* joined(...sources: AsyncIterable<Uint8Array>[]): AsyncGenerator<Uint8Array> {
  for (const source of sources) yield* source;
}

/** Collects everything, and gives it away only when no signal ended the command. */
async function* unlessKilled(process: DriverProcess): AsyncGenerator<Uint8Array> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of process.stdout) chunks.push(chunk);
  if ((await process.wait()).signal === undefined) yield* chunks;
}

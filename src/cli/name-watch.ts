import type { NetworkPolicy, ProcessExit } from "../../contracts/types.js";
import { networkHint, saysUnresolved } from "../sandbox/host.js";
import type { Sandbox } from "../sandbox/types.js";
import { backendOf } from "../sandbox.js";
import type { Flags } from "./invocation.js";
import { networkOf } from "./network-flag.js";
import type { Sink } from "./terminal.js";

/** How much of the end of each stream is looked at. */
const TAIL = 16 << 10;

/** Watches what a command prints for names that it could not resolve. */
export interface NameWatch {
  /** The same sink, watched. */
  over(sink: Sink): Sink;
  /** What to do, if the command failed because of the network rule. */
  hintFor(exit: ProcessExit): string | undefined;
}

/** Watches a command in a sandbox that these flags have opened. Nothing is known about the network of a kept one. */
export async function createNameWatch(flags: Flags, sandbox: Sandbox): Promise<NameWatch> {
  const isKnown = !flags.has("id") && flags.text("isolation") !== "none";
  const hint = isKnown ? networkHint((await networkOf(flags)).network ?? (await usualNetwork(sandbox))) : undefined;
  const tails: { bytes: Buffer }[] = [];
  return {
    over(sink) {
      if (hint === undefined) return sink;
      const tail = { bytes: Buffer.alloc(0) };
      tails.push(tail);
      return {
        write(chunk) {
          tail.bytes = Buffer.from(Buffer.concat([tail.bytes, chunk.subarray(-TAIL)]).subarray(-TAIL));
          return sink.write(chunk);
        },
        end: () => sink.end(),
      };
    },
    hintFor: ({ exitCode }) =>
      exitCode !== 0 && tails.some(({ bytes }) => saysUnresolved(bytes.toString("latin1"))) ? hint : undefined,
  };
}

/** The network of a sandbox that was opened without a rule. */
async function usualNetwork({ backend, capabilities }: Sandbox): Promise<NetworkPolicy> {
  const { defaultNetwork } = await backendOf(backend);
  return defaultNetwork ?? (capabilities.network.includes("none") ? "none" : "full");
}

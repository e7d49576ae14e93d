import type { HarnessOptions } from "../../harness.js";
import { withUserConfig } from "../../sandbox.js";
import { parseDuration, UsageError } from "../commands.js";
import type { Flags } from "../invocation.js";

/** The options of a run, completed from the user's configuration file. What the blueprint says wins over it. */
export async function withRunDefaults<T extends Pick<HarnessOptions, "sandboxType">>(
  options: T,
): Promise<T & Pick<HarnessOptions, "sandboxDefaults">> {
  const { sandboxType } = options;
  const { backend, ...sandboxDefaults } = await withUserConfig(
    sandboxType === undefined ? {} : { backend: sandboxType },
  );
  return {
    ...options,
    ...(backend !== undefined && { sandboxType: backend }),
    ...(Object.keys(sandboxDefaults).length > 0 && { sandboxDefaults }),
  };
}

/** The limits that the flags set. */
export function limitsOf(flags: Flags): NonNullable<HarnessOptions["limits"]> {
  const [time, cost, idle] = [flags.text("max-time"), flags.text("max-cost"), flags.text("idle-timeout")];
  return {
    ...(time !== undefined && { wall: parseDuration("--max-time", time) }),
    ...(cost !== undefined && { costUsd: parseMoney("--max-cost", cost) }),
    ...(idle !== undefined && { idle: parseDuration("--idle-timeout", idle) }),
  };
}

function parseMoney(flag: string, text: string): number {
  const amount = /^\$?\d+(\.\d+)?$/.test(text) ? Number(text.replace("$", "")) : 0;
  if (amount > 0) return amount;
  throw new UsageError(`${flag} takes an amount of US dollars, not "${text}"`, `for example ${flag} 2.50`);
}

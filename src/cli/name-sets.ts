import { UsageError } from "./commands.js";
import type { Flags } from "./invocation.js";
import type { Screen } from "./terminal.js";

/** The flags with the sets of names in `--network` written out: `allow=@claude-code` stands for its hosts. Prints what they are. */
export async function withNameSets(flags: Flags, screen: Screen, signal: AbortSignal): Promise<Flags> {
  const text = flags.text("network");
  if (text === undefined || !/(?:^|[,=])@/.test(text)) return flags;
  const { findNameSet, isNameSet } = await import("../harness.js");
  const parts: string[] = [];
  for (const part of text.split(",")) {
    const [, verb = "", name] = /^((?:allow=)?)@([a-z0-9-]+)$/.exec(part) ?? [];
    // Anything else behind the sign, such as a path, is not ours.
    if (name === undefined || (verb === "" && !isNameSet(name))) {
      parts.push(part);
      continue;
    }
    const { allow, reason } = await findNameSet(name, signal);
    if (allow.length === 0) {
      throw new UsageError(
        `--network @${name} stands for no host: ${reason}`,
        "name the hosts: --network allow=<host>",
      );
    }
    await screen.printNote(`@${name} is ${allow.join(", ")}`);
    parts.push(`${verb}${allow.join(",")}`);
  }
  const expanded = parts.join(",");
  return {
    has: (flag) => flags.has(flag),
    text: (flag) => (flag === "network" ? expanded : flags.text(flag)),
    texts: (flag) => flags.texts(flag),
  };
}

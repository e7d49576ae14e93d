import { INSTALL_TOOLS } from "./all-tools.js";
import { canBeAllowed, hostOf, toShortEntry } from "./hosts.js";
import type { ToolSettings } from "./tool.js";

/** The names of the package managers. */
export function toolNames(): string[] {
  return [...new Set(INSTALL_TOOLS.map(({ name }) => name))];
}

/** The hosts that a package manager gets packages from, by the user's own configuration, as entries of `network.allow`. */
export async function registriesOf(
  name: string,
  config: ToolSettings,
): Promise<{ allow: readonly string[]; reason?: string }> {
  const entries = new Set<string>();
  let reason = `your configuration of ${name} names no registry`;
  for (const tool of INSTALL_TOOLS.filter((each) => each.name === name)) {
    const ask = async (): Promise<readonly string[]> => {
      for (const question of tool.asks ?? []) {
        const answer = await config.ask(question);
        if (answer.lines !== undefined) return answer.lines;
        reason = `your configuration of ${name} names no registry, and ${answer.reason}`;
      }
      return [];
    };
    const { registries } = await tool.setup(config, {}, ask);
    for (const place of registries.flatMap((address) => hostOf(address) ?? [])) {
      if (canBeAllowed(place)) entries.add(toShortEntry(place));
      else reason = `${toShortEntry(place)}, which your configuration of ${name} names, can't be allowed`;
    }
  }
  return entries.size > 0 ? { allow: [...entries].sort() } : { allow: [], reason };
}

import type { NetworkRule } from "../../../contracts/types.js";
import { entryText } from "../../sandbox/host.js";

/** Says what the value of a field asks of the host; undefined when it asks for nothing. */
export type HostWish = (value: unknown) => string | undefined;

export const wishForHosts: HostWish = (value) =>
  listOf(
    "the host",
    [value].flat().map((entry) => entryText(entry as string | NetworkRule)),
  );
export const wishForSecrets: HostWish = (value) => listOf("the secret", value);

function listOf(what: string, value: unknown): string | undefined {
  const names = Array.isArray(value) ? value.map(String) : [String(value)];
  return names.length === 0 ? undefined : names.map((name) => `${what} ${name}`).join(", ");
}

import type { SecretSource } from "../../../../contracts/types.js";
import { fetchFromCommand } from "./command-source.js";
import { type AwsKeys, awsKeysFromEnv, type FetchedAwsKeys, parseAwsKeys } from "./credentials.js";
import type { FetchedValue } from "./fetched-value.js";

/** Fetches the keys of AWS as one value. */
export async function fetchAwsKeys(
  name: string,
  from: Extract<SecretSource, { env: string } | { file: string } | { command: readonly string[] }>,
  read: (path: string) => Promise<string>,
  signal: AbortSignal | undefined,
): Promise<FetchedValue> {
  if ("env" in from) return toValue(awsKeysFromEnv(name, process.env));
  if ("file" in from) return toValue(parseAwsKeys(name, await read(from.file)));
  return await fetchFromCommand(name, from, signal, (output) => toValue(parseAwsKeys(name, output)));
}

/** The keys in a value. */
export function keysOf(value: string): AwsKeys {
  return JSON.parse(value) as AwsKeys;
}

function toValue({ expiresAt, ...keys }: FetchedAwsKeys): FetchedValue {
  return { value: JSON.stringify(keys), ...(expiresAt !== undefined && { expiresAt }) };
}

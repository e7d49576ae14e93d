import { randomInt } from "node:crypto";
import { SandboxError } from "../../../../../contracts/errors.js";
import type { AwsKeys } from "./aws-signature.js";

/** Keys with the time at which they expire, in milliseconds since 1970. */
export interface FetchedAwsKeys extends AwsKeys {
  expiresAt?: number;
}

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/** Keys that open nothing, for one opening of a sandbox. They look like real ones to the programs that check them. */
export function makePlaceholderKeys(): AwsKeys {
  const random = (length: number): string => Array.from({ length }, () => LETTERS[randomInt(LETTERS.length)]).join("");
  return { accessKeyId: `AKIAGLOVEBOX${random(8)}`, secretAccessKey: `glovebox${random(32)}` };
}

/** Takes keys from the variables that AWS's own programs read. Missing ones are `unauthenticated`. */
export function awsKeysFromEnv(name: string, env: Readonly<Record<string, string | undefined>>): FetchedAwsKeys {
  const { AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN } = env;
  for (const [variable, value] of Object.entries({ AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY })) {
    if (value) continue;
    throw new SandboxError("unauthenticated", `Secret ${name} has no value: ${variable} is not set`, {
      hint: "set it, or say where the keys are: from: { file } or from: { command }",
    });
  }
  return checkKeys(name, {
    accessKeyId: AWS_ACCESS_KEY_ID,
    secretAccessKey: AWS_SECRET_ACCESS_KEY,
    sessionToken: AWS_SESSION_TOKEN || undefined,
  });
}

/**
 * Reads keys from what a program printed for AWS's setting `credential_process`, or from a credentials file, of which the profile `default` counts if it
 * has several. Anything else is `unauthenticated`; its message never has a part of the text.
 */
export function parseAwsKeys(name: string, text: string): FetchedAwsKeys {
  return text.trimStart().startsWith("{") ? fromJson(name, text) : fromProfiles(name, text);
}

function fromJson(name: string, text: string): FetchedAwsKeys {
  let found: Record<string, unknown>;
  try {
    found = JSON.parse(text) as Record<string, unknown>;
  } catch {
    // The error of the parser shows a part of the text.
    throw malformed(name, "they start like JSON and are none");
  }
  const { AccessKeyId, SecretAccessKey, SessionToken, Expiration } = found;
  const keys = checkKeys(name, {
    accessKeyId: AccessKeyId,
    secretAccessKey: SecretAccessKey,
    sessionToken: SessionToken ?? undefined,
  });
  if (Expiration === undefined || Expiration === null) return keys;
  const expiresAt = typeof Expiration === "string" ? Date.parse(Expiration) : Number.NaN;
  if (Number.isNaN(expiresAt)) throw malformed(name, "their Expiration is no ISO 8601 time");
  if (expiresAt <= Date.now()) throw malformed(name, "they have expired");
  return { ...keys, expiresAt };
}

function fromProfiles(name: string, text: string): FetchedAwsKeys {
  const profiles = new Map<string, Map<string, string>>();
  let current: Map<string, string> | undefined;
  for (const line of text.split(/\r?\n/)) {
    const profile = /^\s*\[\s*([^\]]+?)\s*\]\s*$/.exec(line)?.[1];
    const setting = /^\s*([a-z_]+)\s*=\s*(.*?)\s*$/i.exec(line);
    if (profile !== undefined) {
      current = profiles.get(profile) ?? new Map();
      profiles.set(profile, current);
    } else if (setting) current?.set((setting[1] ?? "").toLowerCase(), setting[2] ?? "");
  }
  const chosen = profiles.size === 1 ? [...profiles.values()][0] : profiles.get("default");
  if (chosen === undefined) throw malformed(name, "they are neither JSON nor a profile named default");
  return checkKeys(name, {
    accessKeyId: chosen.get("aws_access_key_id"),
    secretAccessKey: chosen.get("aws_secret_access_key"),
    sessionToken: chosen.get("aws_session_token"),
  });
}

function checkKeys(name: string, found: Readonly<Record<keyof AwsKeys, unknown>>): AwsKeys {
  const { accessKeyId, secretAccessKey, sessionToken } = found;
  if (typeof accessKeyId !== "string" || !/^[A-Za-z0-9_]{16,128}$/.test(accessKeyId)) {
    throw malformed(name, "there is no access key id");
  }
  if (typeof secretAccessKey !== "string" || !/^[\x21-\x7e]{16,256}$/.test(secretAccessKey)) {
    throw malformed(name, "there is no secret access key");
  }
  if (sessionToken === undefined) return { accessKeyId, secretAccessKey };
  if (typeof sessionToken !== "string" || !/^[\x21-\x7e]{1,16384}$/.test(sessionToken)) {
    throw malformed(name, "the session token is malformed");
  }
  return { accessKeyId, secretAccessKey, sessionToken };
}

function malformed(name: string, why: string): SandboxError {
  return new SandboxError("unauthenticated", `Secret ${name} has no AWS keys: ${why}`, {
    hint: "a program prints what `aws configure export-credentials` prints; a file looks like ~/.aws/credentials",
  });
}

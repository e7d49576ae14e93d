import type { SecretRule } from "../../../../contracts/types.js";
import type { SecretBroker } from "../secret-broker.js";
import { createBroker } from "./create-broker.js";
import { gitEnv } from "./git-env.js";
import { type FetchContext, LiveSecret } from "./live-secret.js";
import { LoginSecret } from "./login-secret.js";

/** The secrets of one opening of a sandbox. */
export interface OpenSecrets {
  readonly broker: SecretBroker;
  /** The placeholders, by the names of their variables. */
  readonly env: Readonly<Record<string, string>>;
  /** Forgets the values. */
  close(): void;
}

/** Fetches all values of a sandbox's secrets, and makes a placeholder for each: all of them or none. */
export async function openSecrets(
  rules: Readonly<Record<string, SecretRule>>,
  { visible, signal }: FetchContext,
): Promise<OpenSecrets> {
  const all = Object.entries(rules);
  const logins = all.flatMap(([name, rule]) => (rule.login ? [new LoginSecret(name, rule, rule.login.tokenUrls)] : []));
  const secrets = all.flatMap(([name, rule]) => (rule.login ? [] : [new LiveSecret(name, rule, visible)]));
  const close = (): void => {
    for (const secret of [...secrets, ...logins]) secret.close();
  };
  try {
    for (const secret of secrets) await secret.value(signal);
  } catch (error) {
    close();
    throw error;
  }
  return {
    broker: createBroker(secrets, logins),
    env: { ...Object.assign({}, ...secrets.map(({ env }) => env)), ...gitEnv(secrets) },
    close,
  };
}

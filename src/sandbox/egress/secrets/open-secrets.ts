import { isDeepStrictEqual } from "node:util";
import type { SecretRule } from "../../../../contracts/types.js";
import type { FetchContext, SecretBroker } from "../secret-broker.js";
import { createBroker } from "./create-broker.js";
import { gitEnv } from "./git-env.js";
import { LiveSecret } from "./live-secret.js";
import { LoginSecret } from "./login-secret.js";

/** The secrets that a sandbox has for a time. */
export interface OpenSecrets {
  readonly broker: SecretBroker;
  /** The placeholders, by the names of their variables. */
  readonly env: Readonly<Record<string, string>>;
  readonly all: ReadonlyMap<string, OpenSecret>;
  /** Forgets the values, but not those that others still use. */
  close(others?: OpenSecrets): void;
}

interface OpenSecret {
  readonly rule: SecretRule;
  readonly secret: LiveSecret | LoginSecret;
}

/**
 * Fetches all values of a sandbox's secrets, and makes a placeholder for each: all of them or none. Those that `earlier` has by the same rule stay as
 * they are.
 */
export async function openSecrets(
  rules: Readonly<Record<string, SecretRule>>,
  context: FetchContext & { readonly signal?: AbortSignal | undefined },
  earlier?: OpenSecrets,
): Promise<OpenSecrets> {
  const open = (name: string, rule: SecretRule): OpenSecret => {
    const known = earlier?.all.get(name);
    if (known !== undefined && isDeepStrictEqual(known.rule, rule)) return known;
    const secret = rule.login ? new LoginSecret(name, rule, rule.login.tokenUrls) : new LiveSecret(name, rule, context);
    return { rule, secret };
  };
  const all = new Map(Object.entries(rules).map(([name, rule]) => [name, open(name, rule)]));
  const close = (others: OpenSecrets | undefined): void => {
    for (const [name, { secret }] of all) if (others?.all.get(name)?.secret !== secret) secret.close();
  };
  const every = [...all.values()].map(({ secret }) => secret);
  const secrets = every.filter((each) => each instanceof LiveSecret);
  try {
    for (const secret of secrets) await secret.value(context.signal);
  } catch (error) {
    close(earlier);
    throw error;
  }
  return {
    broker: createBroker(
      secrets,
      every.filter((each) => each instanceof LoginSecret),
    ),
    env: { ...Object.assign({}, ...secrets.map(({ env }) => env)), ...gitEnv(secrets) },
    all,
    close,
  };
}

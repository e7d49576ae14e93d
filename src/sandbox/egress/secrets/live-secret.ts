import type { SecretRule } from "../../../../contracts/types.js";
import { registerSecret } from "../../../util/sanitize.js";
import type { FetchContext } from "../secret-broker.js";
import { parseSecretHost, type SecretHost } from "../secret-rules.js";
import { fetchAwsKeys, keysOf } from "./aws-secret.js";
import { fetchFromCommand } from "./command-source.js";
import {
  createAwsSigner,
  fetchGoogleToken,
  fetchOauthToken,
  makePlaceholderKeys,
  type TokenRoute,
  tokenRoute,
} from "./credentials.js";
import { fetchFromEnv } from "./env-source.js";
import { checkValue, type FetchedValue } from "./fetched-value.js";
import { fetchFromFile } from "./file-source.js";
import { makePlaceholder } from "./placeholder.js";

/** A value is fetched again when it has this many milliseconds left, or a tenth of its life if that is less. */
const AHEAD = 60_000;
/** Values that were used before and are still masked. */
const MOST_KEPT = 16;

/** One secret of an open sandbox: its placeholder, and its value in the memory of this process only. */
export class LiveSecret {
  readonly name: string;
  readonly placeholder: string;
  readonly hosts: readonly SecretHost[];
  readonly place: "header" | "query" | "body";
  /** In lower case. Undefined: every header. */
  readonly header: string | undefined;
  /** The placeholders, by the names of their variables. */
  readonly env: Readonly<Record<string, string>>;
  /** What signs requests, where that takes the place of sending the value. */
  readonly signer: ReturnType<typeof createAwsSigner> | undefined;
  /** The user name of git's Basic form. */
  readonly gitUser: string | undefined;
  readonly #rule: SecretRule;
  readonly #context: FetchContext;
  readonly #values = new Map<string, () => void>();
  #current: (FetchedValue & { renewAt: number }) | undefined;
  #fetching: Promise<string> | undefined;
  #isClosed = false;

  constructor(name: string, rule: SecretRule, context: FetchContext) {
    this.name = name;
    const keys = rule.sign === "aws" ? makePlaceholderKeys() : undefined;
    this.placeholder = keys?.accessKeyId ?? makePlaceholder(rule.prefix);
    this.env = {
      [name]: keys?.secretAccessKey ?? this.placeholder,
      ...(keys && { AWS_ACCESS_KEY_ID: this.placeholder }),
    };
    this.signer =
      keys && createAwsSigner({ placeholderId: this.placeholder, keys: async () => keysOf(await this.value()) });
    this.hosts = rule.hosts.flatMap((entry) => parseSecretHost(entry) ?? []);
    this.place = rule.in ?? "header";
    this.header = rule.header?.toLowerCase();
    this.gitUser = rule.git;
    this.#rule = rule;
    this.#context = context;
  }

  /** The values that it has had, the newest last. Answers must contain none of them. */
  get values(): readonly string[] {
    return [...this.#values.keys()];
  }

  /** The value for a request now. Fetched once for all that ask at the same time; one that has not expired is used if another can't be had. */
  async value(signal?: AbortSignal): Promise<string> {
    const current = this.#current;
    if (current !== undefined && Date.now() < current.renewAt) return current.value;
    this.#fetching ??= this.#fetch(signal).finally(() => {
      this.#fetching = undefined;
    });
    try {
      return await this.#fetching;
    } catch (error) {
      if (this.#isClosed || current?.expiresAt === undefined || current.expiresAt <= Date.now()) throw error;
      return current.value;
    }
  }

  /** Forgets the values, also one that is being fetched. */
  close(): void {
    this.#isClosed = true;
    this.#current = undefined;
    for (const unregister of this.#values.values()) unregister();
    this.#values.clear();
  }

  async #fetch(signal: AbortSignal | undefined): Promise<string> {
    const fetched = await this.#fetchFrom(signal);
    if (this.#isClosed) throw new Error("the secret is no more");
    const { value, expiresAt = Number.POSITIVE_INFINITY } = fetched;
    if (this.signer === undefined) checkValue(this.name, value, this.place);
    const life = expiresAt - Date.now();
    this.#current = { ...fetched, renewAt: expiresAt - Math.min(AHEAD, life / 10) };
    for (const each of this.signer ? Object.values(keysOf(value)) : [value]) this.#remember(each);
    return value;
  }

  async #fetchFrom(signal: AbortSignal | undefined): Promise<FetchedValue> {
    const { from = { env: this.name }, sign } = this.#rule;
    const { visible } = this.#context;
    const read = async (path: string): Promise<string> => (await fetchFromFile(this.name, path, visible)).value;
    const route = (): TokenRoute => tokenRoute(this.#context.network());
    if ("google" in from) {
      const { file, scopes = [] } = from.google;
      return await fetchGoogleToken(this.name, await read(file), scopes, route());
    }
    if ("oauth" in from) {
      const { store: path, ...client } = from.oauth;
      return await fetchOauthToken(this.name, client, { path, read: () => read(path) }, route());
    }
    if (sign === "aws") return await fetchAwsKeys(this.name, from, read, signal);
    if ("env" in from) return fetchFromEnv(this.name, from.env);
    if ("file" in from) return await fetchFromFile(this.name, from.file, visible);
    return await fetchFromCommand(this.name, from, signal);
  }

  #remember(value: string): void {
    if (!this.#values.has(value)) this.#values.set(value, registerSecret(value, this.name));
    const [oldest] = this.#values;
    if (this.#values.size <= MOST_KEPT || oldest === undefined) return;
    oldest[1]();
    this.#values.delete(oldest[0]);
  }
}

/** A login of a program in the sandbox. Its refresh token may rotate, and its placeholder stays. */
interface VaultedLogin {
  placeholder: string;
  refreshToken: string;
  /** Resolves when nobody uses the refresh token any more. */
  free: Promise<void>;
}

/** The most tokens that are known at a time; a program can ask for any number. */
const MOST = 64;
const USUAL_NAME = /^(?:access|refresh|id)_?token$/i;
/** `token`, `session-token`: not what describes one, such as `token_type`. */
const TOKEN_NAME = /token$/i;
/** A shorter text under another name opens nothing, and would be found in every other text. */
const LEAST = 8;
const REFRESH_NAME = /refresh[_-]?token$/i;

/** Has the tokens that programs in a sandbox were issued, in the memory of this process only. They have placeholders. */
export class TokenVault {
  readonly #placeholder: () => string;
  readonly #onToken: (token: string) => () => void;
  readonly #tokens = new Map<string, string>();
  readonly #logins = new Map<string, VaultedLogin>();
  readonly #forget = new Map<string, () => void>();

  /** `placeholder` makes a new one. `onToken` hears of each token, and gives a function for when it is forgotten. */
  constructor(opts: { placeholder(): string; onToken(token: string): () => void }) {
    this.#placeholder = opts.placeholder;
    this.#onToken = opts.onToken;
  }

  /** Every token with its placeholder. Answers must contain none of the tokens. */
  get tokens(): (readonly [token: string, placeholder: string])[] {
    const logins = [...this.#logins.values()].map((each) => [each.refreshToken, each.placeholder] as const);
    return [...[...this.#tokens].map(([placeholder, token]) => [token, placeholder] as const), ...logins];
  }

  /** Puts tokens in the place of placeholders. */
  reveal(text: string): string {
    const all = [...this.tokens].reverse();
    return all.reduce((found, [token, placeholder]) => found.replaceAll(placeholder, () => token), text);
  }

  /** The login whose refresh token a text stands for. */
  loginOf(placeholder: string): VaultedLogin | undefined {
    return this.#logins.get(placeholder);
  }

  /** Waits until nobody else uses the refresh token of a login. Gives a function that ends the turn. */
  async takeTurn(login: VaultedLogin): Promise<() => void> {
    const before = login.free;
    let end = (): void => undefined;
    const mine = new Promise<void>((resolve) => {
      end = resolve;
    });
    login.free = before.then(() => mine);
    await before;
    return end;
  }

  /** Puts placeholders in the place of the tokens of an answer, at any depth. `login`: whose refresh token was used for it. */
  conceal(answer: unknown, login: VaultedLogin | undefined): unknown {
    if (Array.isArray(answer)) return answer.map((each) => this.conceal(each, login));
    if (typeof answer !== "object" || answer === null) return answer;
    const entries = Object.entries(answer).map(([name, value]) => {
      if (typeof value !== "string" || !isTokenField(name, value)) return [name, this.conceal(value, login)];
      return [name, REFRESH_NAME.test(name) ? this.#keepLogin(value, login) : this.#keep(value)];
    });
    return Object.fromEntries(entries);
  }

  /** Forgets all of them. */
  clear(): void {
    for (const forget of this.#forget.values()) forget();
    for (const each of [this.#tokens, this.#logins, this.#forget]) each.clear();
  }

  #keep(token: string): string {
    const known = [...this.#tokens].find(([, each]) => each === token)?.[0];
    if (known !== undefined) return known;
    const placeholder = this.#placeholderFor(token);
    this.#tokens.set(placeholder, token);
    this.#remember(token);
    dropOldest(this.#tokens);
    return placeholder;
  }

  #keepLogin(refreshToken: string, used: VaultedLogin | undefined): string {
    this.#remember(refreshToken);
    const known = used ?? [...this.#logins.values()].find((each) => each.refreshToken === refreshToken);
    if (known !== undefined) {
      known.refreshToken = refreshToken;
      return known.placeholder;
    }
    const placeholder = this.#placeholderFor(refreshToken);
    this.#logins.set(placeholder, { placeholder, refreshToken, free: Promise.resolve() });
    dropOldest(this.#logins);
    return placeholder;
  }

  /** Programs read the claims of a signed token, so these stay. Without the signature they open nothing. */
  #placeholderFor(token: string): string {
    const [, claims] = /^(eyJ[\w-]+\.eyJ[\w-]+)\.[\w-]+$/.exec(token) ?? [];
    return claims === undefined ? this.#placeholder() : `${claims}.${this.#placeholder()}`;
  }

  #remember(token: string): void {
    if (this.#forget.has(token)) return;
    this.#forget.set(token, this.#onToken(token));
    const [oldest] = this.#forget;
    if (this.#forget.size <= 4 * MOST || oldest === undefined) return;
    oldest[1]();
    this.#forget.delete(oldest[0]);
  }
}

function isTokenField(name: string, value: string): boolean {
  return value !== "" && (USUAL_NAME.test(name) || (TOKEN_NAME.test(name) && value.length >= LEAST));
}

function dropOldest(map: Map<string, unknown>): void {
  const [oldest] = map.keys();
  if (map.size > MOST && oldest !== undefined) map.delete(oldest);
}

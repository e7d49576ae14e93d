import type { SecretRule } from "../../../../contracts/types.js";
import { registerSecret } from "../../../util/sanitize.js";
import type { Rewriting } from "../forward.js";
import { lenientPath } from "../rules/lenient-path.js";
import { isFor, parseSecretHost, type SecretHost } from "../secret-rules.js";
import { checkTokenUrl, exchangingTokens, TokenVault, withTokens } from "./credentials.js";
import { replaceInHeader } from "./encodings.js";
import { makePlaceholder } from "./placeholder.js";

/** Methods whose answers have no tokens. Some endpoints answer a GET, too. */
const BODILESS: ReadonlySet<string> = new Set(["HEAD", "OPTIONS"]);

/** The logins that programs in a sandbox make by themselves: their tokens stay in the memory of this process. */
export class LoginSecret {
  readonly name: string;
  readonly hosts: readonly SecretHost[];
  readonly #api: readonly SecretHost[];
  readonly #endpoints: readonly { host: SecretHost; path: string }[];
  readonly #vault: TokenVault;

  constructor(name: string, rule: SecretRule, tokenUrls: readonly string[]) {
    this.name = name;
    this.#api = rule.hosts.flatMap((entry) => parseSecretHost(entry) ?? []);
    this.#endpoints = tokenUrls.map((text) => {
      const { hostname, port, pathname } = checkTokenUrl(name, text);
      return { host: { host: hostname, isWildcard: false, port: Number(port || 443) }, path: lenientPath(pathname) };
    });
    this.hosts = [...this.#api, ...this.#endpoints.map(({ host }) => host)];
    this.#vault = new TokenVault({
      placeholder: () => makePlaceholder(),
      onToken: (token) => registerSecret(token, name),
    });
  }

  /** What answers must not contain, and what takes its place. */
  get tokens(): (readonly [token: string, placeholder: string])[] {
    return this.#vault.tokens;
  }

  /** What changes in a request, on top of what changes anyway. `onUsed` is called when a token is put into it, or its answer may have some. */
  changesOf(
    { host, port, method }: { host: string; port: number; method: string },
    otherwise: Rewriting,
    onUsed: () => void,
  ): Rewriting {
    const vault = this.#vault;
    const paths = this.#endpoints.filter((each) => isFor(each.host, host, port)).map(({ path }) => path);
    const isApi = this.#api.some((entry) => isFor(entry, host, port));
    const usual = isApi ? withTokens(vault, otherwise, { replaceInHeader, onUsed }) : otherwise;
    if (paths.length === 0 || BODILESS.has(method)) return usual;
    let chosen = usual;
    return {
      async ofRequest(request, body) {
        const [path = ""] = request.path.split("?", 1);
        // Whatever a server takes for its endpoint: otherwise another spelling would bring the tokens in.
        if (paths.includes(lenientPath(path))) {
          chosen = exchangingTokens(vault, usual);
          onUsed();
        }
        return await chosen.ofRequest(request, body);
      },
      ofHeaders: (headers) => chosen.ofHeaders(headers),
      ofBody: (headers) => chosen.ofBody(headers),
      ofFrames: () => chosen.ofFrames?.(),
      ended: () => chosen.ended?.(),
    };
  }

  /** Forgets all tokens. */
  close(): void {
    this.#vault.clear();
  }
}

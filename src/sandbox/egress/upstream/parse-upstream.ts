import { SandboxError } from "../../../../contracts/errors.js";
import { describe } from "../../../util/schema.js";
import { hostInUrl, normalizeHost, normalizeIPv6 } from "../host-name.js";
import { decodeBytes } from "../rules/lenient-path.js";

/** A proxy that stands between this machine and the internet. */
export interface Upstream {
  readonly host: string;
  readonly port: number;
  /** The value of `Proxy-Authorization`. A secret. */
  readonly authorization?: string;
}

/** The upstream proxy for a host and port; undefined: none. */
export type UpstreamFor = (host: string, port: number) => Upstream | undefined;

type Variables = Readonly<Record<string, string | undefined>>;

const WAY_OUT = 'upstream: "none" goes without one';

/** Parses `http://host:port`; `invalid_argument` for anything else. Credentials are refused: options are recorded and shown. */
export function parseUpstream(text: string, name: string): Upstream {
  const upstream = parseUrl(text, name);
  if (upstream.authorization === undefined) return upstream;
  throw new SandboxError("invalid_argument", `Invalid ${name}: expected an address without a password`, {
    hint: `set HTTPS_PROXY=http://user:password@${hostInUrl(upstream.host)}:${upstream.port}; ${name} stays without it`,
  });
}

/**
 * Decides which connections go through an upstream proxy: the one that the rules name for all of them, otherwise those of the user's variables, with
 * the exceptions of `NO_PROXY`. A password comes from the variables only.
 */
export function upstreamFor(named: string | undefined, variables: Variables): UpstreamFor {
  if (named === "none") return () => undefined;
  if (named !== undefined) {
    const { host, port } = parseUpstream(named, "network.upstream");
    const known = ["https", "http"]
      .flatMap((scheme) => ofVariable(scheme, variables, true) ?? [])
      .find((each) => each.host === host && each.port === port);
    return () => known ?? { host, port };
  }
  const [https, http] = [ofVariable("https", variables, false), ofVariable("http", variables, false)];
  const exceptions = (variables["no_proxy"] || variables["NO_PROXY"] || "")
    .split(/[\s,]+/)
    .filter((each) => each !== "");
  return (host, port) => {
    if (exceptions.some((each) => isException(each, host, port))) return undefined;
    return port === 80 ? http : https;
  };
}

function ofVariable(scheme: string, variables: Variables, isLenient: boolean): Upstream | undefined {
  const name = [`${scheme}_proxy`, `${scheme}_proxy`.toUpperCase()].find((each) => (variables[each] ?? "") !== "");
  const text = name === undefined ? undefined : variables[name];
  if (name === undefined || text === undefined) return undefined;
  try {
    return parseUrl(text.includes("://") ? text : `http://${text}`, name);
  } catch (error) {
    if (isLenient) return undefined;
    throw error;
  }
}

function parseUrl(text: string, name: string): Upstream {
  const refuse = (): SandboxError =>
    new SandboxError(
      "invalid_argument",
      `Invalid ${name}: expected "http://host:port", got ${describe(withoutPassword(text))}`,
      {
        hint: WAY_OUT,
      },
    );
  if (!URL.canParse(text)) throw refuse();
  const { protocol, hostname, port, username, password, pathname, search, hash } = new URL(text);
  const host = normalizeHost(hostname);
  if (protocol !== "http:" || host === undefined || pathname !== "/" || search !== "" || hash !== "") throw refuse();
  const place = { host, port: port === "" ? 80 : Number(port) };
  if (username === "" && password === "") return place;
  // Bytes, which need not be UTF-8.
  const credentials = Buffer.from(`${decodeBytes(username)}:${decodeBytes(password)}`, "latin1");
  return { ...place, authorization: `Basic ${credentials.toString("base64")}` };
}

/** Whatever stands before the last `@` may be a part of a password, with characters that an address does not allow. */
function withoutPassword(text: string): string {
  return text.replace(/^([a-z][a-z0-9+.-]*:\/\/)?.*@/is, "$1***@");
}

/** As curl reads NO_PROXY: a name stands for itself and everything below it. */
function isException(text: string, host: string, port: number): boolean {
  if (text === "*") return true;
  const [, name = "", only] = /^(.*?)(?::(\d+))?$/.exec(normalizeIPv6(text) === undefined ? text : `[${text}]`) ?? [];
  if (only !== undefined && Number(only) !== port) return false;
  const wanted = normalizeHost(name.replace(/^\*?\./, ""));
  return wanted !== undefined && (host === wanted || host.endsWith(`.${wanted}`));
}

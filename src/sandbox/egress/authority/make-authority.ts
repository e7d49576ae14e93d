import { isIP } from "node:net";
import { createSecureContext, type SecureContext } from "node:tls";
import { SandboxError } from "../../../../contracts/errors.js";
import { describe } from "../../../util/schema.js";
import { normalizeHost, normalizeIPv6 } from "../host-name.js";
import { AUTHORITY_NAME, distinguishedName, type KeyPair, makeKeyPair, signCertificate } from "./certificate.js";
import {
  authorityKeyId,
  basicConstraints,
  keyUsage,
  nameConstraints,
  serverAuth,
  subjectAltName,
  subjectKeyId,
} from "./extensions.js";

/** A certificate authority, made for one opening of a sandbox. Its key exists in the memory of this process only. */
export interface Authority {
  /** The certificate, PEM. It is valid for the names that it was made for and nothing else. */
  readonly certificate: string;
  /** Whether it may sign for a host. */
  isFor(host: string): boolean;
  /** Key and certificate for a host, made on first use and kept. A host that the authority is not for is `internal`. */
  contextFor(host: string): SecureContext;
}

const DAY = 24 * 3_600_000;
/** The clock of a sandbox, or of the machine since a moment ago, may be off by a day or more. */
const BACKDATED = 2 * DAY;
const AUTHORITY_LIFE = 730 * DAY;
/** Browsers accept at most 398 days. */
const LEAF_LIFE = 60 * DAY;
/** A certificate with less time than this ahead is made anew. */
const LEAF_REST = 30 * DAY;
/** With a wildcard, the inside decides how many hosts there are. */
const MOST_KEPT = 256;

interface Leaf {
  context: SecureContext;
  renewAt: number;
}

/** Makes an authority for hosts, and with `*.host` for everything below `host` but not itself. */
export function makeAuthority(names: readonly string[], now: () => number = Date.now): Authority {
  const hosts = names.map(parseName);
  if (hosts.length === 0) throw new SandboxError("internal", "A certificate authority needs at least one name");
  const key = makeKeyPair();
  const subject = distinguishedName(AUTHORITY_NAME);
  const certificate = signAuthority(key, subject, hosts, now());
  const leaves = new Map<string, Leaf>();
  const isFor = (asked: string): boolean => {
    const host = normalize(asked);
    return host !== undefined && hosts.some((name) => matches(name, host));
  };
  return {
    certificate,
    isFor,
    contextFor(asked) {
      const host = normalize(asked);
      if (host === undefined || !isFor(host)) {
        throw new SandboxError("internal", `The certificate authority is not for ${describe(asked)}`);
      }
      const known = leaves.get(host);
      leaves.delete(host);
      const leaf =
        known !== undefined && now() < known.renewAt ? known : makeLeaf(host, key, subject, certificate, now());
      leaves.set(host, leaf);
      const [oldest] = leaves.keys();
      if (leaves.size > MOST_KEPT && oldest !== undefined) leaves.delete(oldest);
      return leaf.context;
    },
  };
}

interface Name {
  host: string;
  isWildcard: boolean;
}

function parseName(name: string): Name {
  const isWildcard = name.startsWith("*.");
  const host = normalize(isWildcard ? name.slice(2) : name);
  if (host === undefined || (isWildcard && isIP(host) > 0)) {
    throw new SandboxError("internal", `A certificate authority can't be for ${describe(name)}`);
  }
  return { host, isWildcard };
}

function normalize(host: string): string | undefined {
  return normalizeHost(host) ?? normalizeIPv6(host);
}

function matches({ host, isWildcard }: Name, asked: string): boolean {
  return isWildcard ? asked.endsWith(`.${host}`) : asked === host;
}

function signAuthority(key: KeyPair, subject: Buffer, names: readonly Name[], now: number): string {
  const fields = {
    issuer: subject,
    subject,
    notBefore: new Date(now - BACKDATED),
    notAfter: new Date(now + AUTHORITY_LIFE),
    publicInfo: key.publicInfo,
    extensions: [
      basicConstraints(true),
      keyUsage(true),
      serverAuth(),
      nameConstraints([...new Set(names.map(({ host }) => host))]),
      subjectKeyId(key.id),
      authorityKeyId(key.id),
    ],
  };
  return signCertificate(fields, key.privateKey);
}

function makeLeaf(host: string, issuer: KeyPair, issuerName: Buffer, ca: string, now: number): Leaf {
  const own = makeKeyPair();
  const fields = {
    issuer: issuerName,
    // No common name: it has room for 64 characters, and every client of today reads the alternative names.
    subject: distinguishedName(),
    notBefore: new Date(now - BACKDATED),
    notAfter: new Date(now + LEAF_LIFE),
    publicInfo: own.publicInfo,
    extensions: [
      basicConstraints(false),
      keyUsage(false),
      serverAuth(),
      subjectAltName(host),
      subjectKeyId(own.id),
      authorityKeyId(issuer.id),
    ],
  };
  const cert = signCertificate(fields, issuer.privateKey);
  const key = own.privateKey.export({ type: "pkcs8", format: "pem" });
  return { context: createSecureContext({ key, cert, ca }), renewAt: now + LEAF_LIFE - LEAF_REST };
}

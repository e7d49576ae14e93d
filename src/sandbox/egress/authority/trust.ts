import { X509Certificate } from "node:crypto";
import { rootCertificates } from "node:tls";
import { SandboxError } from "../../../../contracts/errors.js";
import { describe } from "../../../util/schema.js";
import { writeJavaStore } from "./java-store.js";
import { type Authority, makeAuthority } from "./make-authority.js";
import { TRUST_NAMES as NAMES, type TrustPaths, trustPaths } from "./trust-paths.js";

const BLOCK = /-----BEGIN CERTIFICATE-----[\sA-Za-z0-9+/=]+-----END CERTIFICATE-----/g;

/** The files, by name. `system`: the bundle that the sandbox has; where it has none, the authorities that Node trusts take its place. */
export function trustFiles(
  certificates: readonly string[],
  system: string | undefined,
  further: readonly string[] = [],
): Map<string, Buffer> {
  const base = [...knownAuthorities(system), ...further.flatMap(readCertificate)];
  const own = certificates.map((certificate) => new X509Certificate(certificate).raw);
  return new Map([
    [NAMES.authority, Buffer.from([...certificates, ...further].join("\n"))],
    [NAMES.bundle, Buffer.from([...base.map(({ pem }) => pem), ...certificates].join("\n"))],
    [NAMES.java, writeJavaStore([...base.map(({ der }) => der), ...own])],
  ]);
}

interface KnownAuthority {
  pem: string;
  der: Uint8Array;
}

/** The last bundle that was read: most sandboxes have the same. */
let last: { system: string | undefined; known: KnownAuthority[] } | undefined;

function knownAuthorities(system: string | undefined): KnownAuthority[] {
  if (last === undefined || last.system !== system) {
    const own = system?.match(BLOCK) ?? [];
    last = { system, known: (own.length > 0 ? own : rootCertificates).flatMap(readCertificate) };
  }
  return last.known;
}

/** One that can't be read is left out. Java would refuse all of a store for its sake. */
function readCertificate(pem: string): KnownAuthority[] {
  try {
    return [{ pem, der: new X509Certificate(pem).raw }];
  } catch {
    return [];
  }
}

/** The variables by which programs trust an authority. Where one adds to what a program brings along, it names the certificate alone. */
export function trustEnv({ authority, bundle, java }: TrustPaths): Record<string, string> {
  return {
    SSL_CERT_FILE: bundle,
    NODE_EXTRA_CA_CERTS: authority,
    DENO_CERT: authority,
    REQUESTS_CA_BUNDLE: bundle,
    PIP_CERT: bundle,
    CURL_CA_BUNDLE: bundle,
    GIT_SSL_CAINFO: bundle,
    CARGO_HTTP_CAINFO: bundle,
    AWS_CA_BUNDLE: bundle,
    CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE: bundle,
    GRPC_DEFAULT_SSL_ROOTS_FILE_PATH: bundle,
    JAVA_TOOL_OPTIONS: `-Djavax.net.ssl.trustStore=${java} -Djavax.net.ssl.trustStoreType=JKS`,
  };
}

/** The authority of an opening, and what a backend needs to make programs in the sandbox trust it. */
export interface Trust {
  /** The names that it is for, with `*.` where they stand for all below. */
  readonly names: readonly string[];
  readonly authority: Authority;
  files(system: string | undefined): ReadonlyMap<string, Uint8Array>;
  paths(folder: string): TrustPaths;
  /** One for more names. What the programs that run trust by now stays valid: the new names have an authority of their own. */
  extended(more: readonly string[]): Trust;
}

/** Makes an authority for these names, for one opening of a sandbox, whose programs trust further ones, too. */
export function makeTrust(names: readonly string[], further: readonly string[] = []): Trust {
  return trustIn(names, [makeAuthority(names)], further);
}

function trustIn(names: readonly string[], authorities: readonly Authority[], further: readonly string[]): Trust {
  const certificates = authorities.map(({ certificate }) => certificate);
  return {
    names,
    authority: {
      certificate: certificates.join(""),
      isFor: (host) => authorities.some((each) => each.isFor(host)),
      contextFor(host) {
        const own = authorities.find((each) => each.isFor(host));
        if (own === undefined) throw new SandboxError("internal", `No certificate authority is for ${describe(host)}`);
        return own.contextFor(host);
      },
    },
    files: (system) => trustFiles(certificates, system, further),
    paths: trustPaths,
    extended: (more) => trustIn([...names, ...more], [...authorities, makeAuthority(more)], further),
  };
}

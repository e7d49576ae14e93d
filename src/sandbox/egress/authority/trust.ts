import { X509Certificate } from "node:crypto";
import { posix } from "node:path";
import { rootCertificates } from "node:tls";
import { hashedName } from "./certificate.js";
import { writeJavaStore } from "./java-store.js";
import { type Authority, makeAuthority } from "./make-authority.js";

/** Where programs in a sandbox find what they need to trust an authority. */
export interface TrustPaths {
  /** Its certificate alone. */
  authority: string;
  /** Its certificate and those that the sandbox trusts anyway. */
  bundle: string;
  /** The same, for Java. */
  java: string;
}

const NAMES: TrustPaths = { authority: "authority.pem", bundle: "bundle.pem", java: "authorities.jks" };
const BLOCK = /-----BEGIN CERTIFICATE-----[\sA-Za-z0-9+/=]+-----END CERTIFICATE-----/g;

/** The paths of the files in a folder of the sandbox. */
export function trustPaths(folder: string): TrustPaths {
  return {
    authority: posix.join(folder, NAMES.authority),
    bundle: posix.join(folder, NAMES.bundle),
    java: posix.join(folder, NAMES.java),
  };
}

/** The files, by name. `system`: the bundle that the sandbox has; where it has none, the authorities that Node trusts take its place. */
export function trustFiles(
  certificate: string,
  system: string | undefined,
  further: readonly string[] = [],
): Map<string, Buffer> {
  const base = [...knownAuthorities(system), ...further.flatMap(readCertificate)];
  return new Map([
    [NAMES.authority, Buffer.from([certificate, ...further].join("\n"))],
    [NAMES.bundle, Buffer.from([...base.map(({ pem }) => pem), certificate].join("\n"))],
    [NAMES.java, writeJavaStore([...base.map(({ der }) => der), new X509Certificate(certificate).raw])],
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
  readonly authority: Authority;
  /** The name under which OpenSSL looks for its certificate in a folder. */
  readonly hashedName: string;
  files(system: string | undefined): ReadonlyMap<string, Uint8Array>;
  paths(folder: string): TrustPaths;
}

/** Makes an authority for these names, for one opening of a sandbox, whose programs trust further ones, too. */
export function makeTrust(names: readonly string[], further: readonly string[] = []): Trust {
  const authority = makeAuthority(names);
  return {
    authority,
    hashedName: hashedName(),
    files: (system) => trustFiles(authority.certificate, system, further),
    paths: trustPaths,
  };
}

import { chmodSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Trust } from "../../egress.js";
import type { JailBind } from "../../jail.js";

/** What makes programs of a sandbox trust the authority of its opening. */
export interface PlacedTrust {
  bind: JailBind;
  /** Links in `/etc` that lead to the files, by name. */
  links: Readonly<Record<string, string>>;
}

/** The folder in the sandbox. */
export const TRUST_FOLDER = "/glovebox/trust";
const DIRECTORY = "trust";

/** Where distributions have the bundle of all authorities, below `/etc`. */
const BUNDLES = [
  "ssl/certs/ca-certificates.crt",
  "pki/tls/certs/ca-bundle.crt",
  "ssl/ca-bundle.pem",
  "ssl/certs/ca-bundle.crt",
  "ssl/cert.pem",
];
const JAVA_STORE = "ssl/certs/java/cacerts";
const MAX_BUNDLE = 8 << 20;

/**
 * Writes what programs need to trust an authority to the directory of a sandbox's record, from where the jail shows it, read-only. The links have the
 * same names for every authority, so that all these sandboxes share one `/etc`. Without an authority, what an opening that crashed left is removed.
 */
export function placeTrust(directory: string, trust: Trust | undefined): PlacedTrust | undefined {
  const source = join(directory, DIRECTORY);
  removeTrust(directory);
  if (trust === undefined) return undefined;
  mkdirSync(source);
  chmodSync(source, 0o755);
  for (const [name, content] of trust.files(systemBundle())) {
    writeFileSync(join(source, name), content);
    chmodSync(join(source, name), 0o644);
  }
  const { authority, bundle, java } = trust.paths(TRUST_FOLDER);
  return {
    bind: { source, target: TRUST_FOLDER },
    links: {
      ...Object.fromEntries(BUNDLES.map((name) => [name, bundle])),
      [JAVA_STORE]: java,
      [`ssl/certs/${trust.hashedName}`]: authority,
    },
  };
}

/** Removes the files. */
export function removeTrust(directory: string): void {
  rmSync(join(directory, DIRECTORY), { recursive: true, force: true });
}

/** The host's bundle, if every user may read it. */
function systemBundle(): string | undefined {
  for (const name of BUNDLES) {
    const path = join("/etc", name);
    const found = statSync(path, { throwIfNoEntry: false });
    if (found?.isFile() && (found.mode & 0o004) !== 0 && found.size <= MAX_BUNDLE) return readFileSync(path, "utf8");
  }
  return undefined;
}

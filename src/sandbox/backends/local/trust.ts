import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Trust } from "../../egress.js";
import type { JailBind } from "../../jail.js";

/** What makes programs of a sandbox trust the authority of its opening. */
export interface PlacedTrust {
  bind: JailBind;
  /** Links in `/etc` that lead to the files, by name. Absent: there are no files yet. */
  links?: Readonly<Record<string, string>>;
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
 * same names for every authority, so that all these sandboxes share one `/etc`. Without an authority the directory is empty: the first one may come
 * while the sandbox is open.
 */
export function placeTrust(directory: string, trust: Trust | undefined): PlacedTrust {
  const source = join(directory, DIRECTORY);
  const bind = { source, target: TRUST_FOLDER };
  removeTrust(directory);
  mkdirSync(source);
  chmodSync(source, 0o755);
  if (trust === undefined) return { bind };
  writeTrust(directory, trust);
  const { authority, bundle, java } = trust.paths(TRUST_FOLDER);
  return {
    bind,
    links: {
      ...Object.fromEntries(BUNDLES.map((name) => [name, bundle])),
      [JAVA_STORE]: java,
      [`ssl/certs/${trust.hashedName}`]: authority,
    },
  };
}

/** Writes the files of an authority, also while programs read those of another. */
export function writeTrust(directory: string, trust: Trust): void {
  for (const [name, content] of trust.files(systemBundle())) {
    const path = join(directory, DIRECTORY, name);
    writeFileSync(`${path}.new`, content);
    chmodSync(`${path}.new`, 0o644);
    renameSync(`${path}.new`, path);
  }
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

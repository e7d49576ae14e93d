import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { basename, join } from "node:path";
import { privateSubdirectory } from "../../../machine/home.js";
import { removeOwnTree } from "../../../machine/remove-tree.js";
import { hashedName, type Trust, trustPaths } from "../../egress.js";
import type { JailBind } from "../../jail.js";
import { linkShared } from "./link-shared.js";
import type { EtcChanges } from "./prepared-etc.js";

/** What makes programs of a sandbox trust the authority of its opening. */
export interface PlacedTrust {
  bind: JailBind;
  /** Links in `/etc` that lead to the files, and copies of those that the host has in their places. */
  etc: EtcChanges;
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
/** The folder below `/etc` that has what the host trusts. */
const SYSTEM = "glovebox";
const JAVA_STORE = "ssl/certs/java/cacerts";
const MAX_BUNDLE = 8 << 20;

/**
 * Makes the directory of a sandbox's record from which the jail shows what programs trust, read-only. The links in `/etc` have the same names for every
 * authority, so that all sandboxes share one. Without an authority they lead on to the host's own: the first one may come while the sandbox is open,
 * and programs that read nothing but the system's bundle must trust it, too.
 */
export async function placeTrust(directory: string, trust: Trust | undefined): Promise<PlacedTrust> {
  const source = join(directory, DIRECTORY);
  // Only a sandbox that is reopened may have one.
  if (existsSync(source)) await removeTrust(directory);
  mkdirSync(source);
  chmodSync(source, 0o755);
  const { authority, bundle, java } = trustPaths(TRUST_FOLDER);
  const own = Object.entries({ [bundle]: systemPath(BUNDLES), [java]: systemPath([JAVA_STORE]) });
  const found = own.flatMap(([path, of]) => (of === undefined ? [] : [{ name: basename(path), of }]));
  if (trust !== undefined) writeTrust(directory, trust);
  else for (const { name } of found) placeLink(`/etc/${SYSTEM}/${name}`, join(source, name));
  return {
    bind: { source, target: TRUST_FOLDER },
    etc: {
      links: {
        ...Object.fromEntries(BUNDLES.map((name) => [name, bundle])),
        [JAVA_STORE]: java,
        [`ssl/certs/${hashedName()}`]: authority,
      },
      copies: Object.fromEntries(found.map(({ name, of }) => [`${SYSTEM}/${name}`, of])),
    },
  };
}

/** All sandboxes share one link. */
function placeLink(leadsTo: string, path: string): void {
  const shared = join(privateSubdirectory("etc"), `.link${leadsTo.replaceAll("/", "-")}`);
  linkShared(shared, path, (file) => symlinkSync(leadsTo, file));
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

/** Removes the files. Commands can only read them, so this starts no program. */
export async function removeTrust(directory: string): Promise<void> {
  await removeOwnTree(join(directory, DIRECTORY));
}

/** The host's bundle. */
function systemBundle(): string | undefined {
  const path = systemPath(BUNDLES);
  return path === undefined ? undefined : readFileSync(path, "utf8");
}

/** The first of these files below `/etc` that the host has, if every user may read it. */
function systemPath(names: readonly string[]): string | undefined {
  return names
    .map((name) => join("/etc", name))
    .find((path) => {
      const found = statSync(path, { throwIfNoEntry: false });
      return found?.isFile() && (found.mode & 0o004) !== 0 && found.size <= MAX_BUNDLE;
    });
}

import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Trees } from "./trees.js";

/** What an address leads to. */
export interface Image {
  /** The address with the digest of what it led to. */
  readonly reference: string;
  readonly tree: string;
  readonly layers: number;
}

const KNOWN = ["docker.io/library/debian:stable-slim", "docker.io/library/alpine:3"];
const LAYERS = 1;
const TAG = /:[^/:]*$/;

/** The registry that a fake engine pulls from: each tag has two versions, and both can always be had by their digests. */
export class Images {
  readonly #trees: Trees;
  readonly #moved: ReadonlySet<string>;
  readonly #pulled = new Map<string, string>();

  /** Those that moved lead to their second version, as tags do one day. */
  constructor(trees: Trees, moved: readonly string[] = []) {
    this.#trees = trees;
    this.#moved = new Set(moved.map(normalized));
  }

  resolve(address: string): Image {
    const [name = "", digest] = normalized(address).split("@");
    const version = this.#versions(name).find((one) => (digest === undefined ? one.isCurrent : one.digest === digest));
    if (version === undefined) throw new Error(`failed to resolve image "${address}": not found`);
    const reference = `${name}@${version.digest}`;
    const tree = this.#pulled.get(version.digest) ?? this.#pull(version.digest);
    return { reference, tree, layers: LAYERS };
  }

  #versions(name: string): { digest: string; isCurrent: boolean }[] {
    // A digest is found in a repository, whatever tag is beside it.
    const found = KNOWN.filter((known) => known === name || known.startsWith(`${name.replace(TAG, "")}:`));
    return found.flatMap((known) =>
      [false, true].map((isSecond) => ({
        digest: `sha256:${createHash("sha256").update(`${known} ${isSecond}`).digest("hex")}`,
        isCurrent: known === name && isSecond === this.#moved.has(known),
      })),
    );
  }

  #pull(digest: string): string {
    const tree = this.#trees.distribution();
    writeFileSync(join(tree, "etc/image"), `${digest}\n`);
    this.#pulled.set(digest, tree);
    return tree;
  }
}

/** `debian` is `docker.io/library/debian:latest`. */
function normalized(address: string): string {
  const [name = "", digest] = address.split("@");
  const parts = name.split("/");
  const [first = ""] = parts;
  if (parts.length === 1) parts.unshift("docker.io", "library");
  else if (!/[.:]/.test(first) && first !== "localhost") parts.unshift("docker.io");
  const whole = parts.join("/");
  const tagged = digest === undefined && !TAG.test(whole) ? `${whole}:latest` : whole;
  return digest === undefined ? tagged : `${tagged}@${digest}`;
}

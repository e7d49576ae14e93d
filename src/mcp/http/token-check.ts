import { createHash, timingSafeEqual } from "node:crypto";
import { SandboxError } from "../../../contracts/errors.js";

const SHORTEST = 16;

/** Knows clients by their tokens. Compares all of them, each in constant time, so that the time says nothing. */
export class TokenCheck {
  readonly #digests: readonly Buffer[];

  constructor(tokens: readonly string[]) {
    if (tokens.some((token) => token.length < SHORTEST)) {
      throw new SandboxError("invalid_argument", `A token has fewer than ${SHORTEST} characters`, {
        hint: "make one: head -c 32 /dev/urandom | base64",
      });
    }
    this.#digests = tokens.map(digestOf);
  }

  /** The client that an `Authorization` header is of; undefined for no token or an unknown one. */
  ownerOf(header: string | undefined): string | undefined {
    const token = /^Bearer +([\x21-\x7e]+) *$/i.exec(header ?? "")?.[1];
    const given = digestOf(token ?? "");
    let found: string | undefined;
    for (const digest of this.#digests) {
      if (timingSafeEqual(digest, given)) found = digest.toString("hex");
    }
    return token === undefined ? undefined : found;
  }
}

function digestOf(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}

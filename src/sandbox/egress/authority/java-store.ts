import { createHash } from "node:crypto";

const MAGIC = 0xfeed_feed;
const VERSION = 2;
const TRUSTED_CERTIFICATE = 2;
/** What Java's own store has. It protects nothing: the certificates are not encrypted, and only tools ask for it. */
const PASSWORD = "changeit";
const SALT = "Mighty Aphrodite";

/** Writes a store of trusted certificates for Java, in the format JKS: every version reads it, and needs no password. */
export function writeJavaStore(certificates: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat([
    number(MAGIC),
    number(VERSION),
    number(certificates.length),
    ...certificates.flatMap((certificate, index) => [
      number(TRUSTED_CERTIFICATE),
      text(`authority-${index}`),
      Buffer.alloc(8), // when it was added
      text("X.509"),
      number(certificate.length),
      certificate,
    ]),
  ]);
  const password = Buffer.from(PASSWORD, "utf16le").swap16();
  return Buffer.concat([content, createHash("sha1").update(password).update(SALT).update(content).digest()]);
}

function number(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value, "latin1");
  return Buffer.concat([Buffer.from([bytes.length >> 8, bytes.length & 0xff]), bytes]);
}

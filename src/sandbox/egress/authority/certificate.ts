import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";
import { bits, integer, oid, sequence, setOf, tagged, time, utf8 } from "./der.js";

/** A key pair on the curve P-256, which every client knows. */
export interface KeyPair {
  privateKey: KeyObject;
  /** The public half, as a certificate has it. */
  publicInfo: Buffer;
  /** What certificates call it: 160 bits of a hash of the public half. */
  id: Buffer;
}

/** What a certificate says. */
export interface CertificateFields {
  issuer: Buffer;
  subject: Buffer;
  notBefore: Date;
  notAfter: Date;
  publicInfo: Buffer;
  extensions: readonly Uint8Array[];
}

/** The same for every authority, so that a sandbox can be given a place for it before there is one. Clients tell them apart by the ids of their keys. */
export const AUTHORITY_NAME = "Sandbox authority";

const ORGANIZATION_NAME = "Glovebox";
const VERSION_3 = tagged(0, integer(Buffer.from([2])), "constructed");
const EXTENSIONS = 3;
const ECDSA_SHA256 = sequence(oid("1.2.840.10045.4.3.2"));
const ORGANIZATION = "2.5.4.10";
const COMMON_NAME = "2.5.4.3";
/** The uncompressed point at the end of the public half. */
const POINT_BYTES = 65;

/** Makes a key pair. */
export function makeKeyPair(): KeyPair {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const publicInfo = publicKey.export({ type: "spki", format: "der" });
  const id = createHash("sha256").update(publicInfo.subarray(-POINT_BYTES)).digest().subarray(0, 20);
  return { privateKey, publicInfo, id };
}

/** The name of a subject or issuer. */
export function distinguishedName(commonName?: string): Buffer {
  return sequence(...nameParts(ORGANIZATION_NAME, commonName));
}

function nameParts(organization: string, commonName?: string): Buffer[] {
  const part = (id: string, text: string): Buffer => setOf(sequence(oid(id), utf8(text)));
  return [part(ORGANIZATION, organization), ...(commonName === undefined ? [] : [part(COMMON_NAME, commonName)])];
}

/** The name under which OpenSSL looks for the authority's certificate in a folder: a hash of the subject in lower case, and a number. */
export function hashedName(): string {
  const parts = nameParts(ORGANIZATION_NAME.toLowerCase(), AUTHORITY_NAME.toLowerCase());
  const hash = createHash("sha1").update(Buffer.concat(parts)).digest().readUInt32LE(0);
  return `${hash.toString(16).padStart(8, "0")}.0`;
}

/** Writes a certificate with a random serial number and signs it; PEM. */
export function signCertificate(fields: CertificateFields, key: KeyObject): string {
  const content = sequence(
    VERSION_3,
    integer(serialNumber()),
    ECDSA_SHA256,
    fields.issuer,
    sequence(time(fields.notBefore), time(fields.notAfter)),
    fields.subject,
    fields.publicInfo,
    tagged(EXTENSIONS, sequence(...fields.extensions), "constructed"),
  );
  return toPem(sequence(content, ECDSA_SHA256, bits(sign("sha256", content, key))));
}

function serialNumber(): Buffer {
  const bytes = randomBytes(16);
  // Never zero, nor longer than 16 bytes.
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40;
  return bytes;
}

function toPem(der: Buffer): string {
  const lines = der.toString("base64").match(/.{1,64}/g) ?? [];
  return ["-----BEGIN CERTIFICATE-----", ...lines, "-----END CERTIFICATE-----", ""].join("\n");
}

import { isIP, isIPv4 } from "node:net";
import { addressValue } from "../addresses.js";
import { bits, boolean, integer, octets, oid, sequence, tagged } from "./der.js";

const DNS_NAME = 2;
const IP_ADDRESS = 7;
const PERMITTED = 0;
const EXCLUDED = 1;
const KEY_ID = 0;
const DIGITAL_SIGNATURE = bits(Buffer.from([0x80]), 7);
const SIGN_CERTIFICATES = bits(Buffer.from([0x04]), 2);

function extension(id: string, value: Uint8Array, isCritical = false): Buffer {
  return sequence(oid(id), ...(isCritical ? [boolean(true)] : []), octets(value));
}

/** Whether a certificate may sign others; if so, only certificates that sign none. */
export function basicConstraints(isAuthority: boolean): Buffer {
  const value = isAuthority ? sequence(boolean(true), integer(Buffer.from([0]))) : sequence();
  return extension("2.5.29.19", value, true);
}

/** What the key may be used for: to sign certificates, or the handshakes of a server. */
export function keyUsage(isAuthority: boolean): Buffer {
  return extension("2.5.29.15", isAuthority ? SIGN_CERTIFICATES : DIGITAL_SIGNATURE, true);
}

/** Restricts a certificate, or all that it signs, to servers of TLS. */
export function serverAuth(): Buffer {
  return extension("2.5.29.37", sequence(oid("1.3.6.1.5.5.7.3.1")));
}

/** The id of the certificate's own key. */
export function subjectKeyId(id: Uint8Array): Buffer {
  return extension("2.5.29.14", octets(id));
}

/** The id of the key that signed the certificate. */
export function authorityKeyId(id: Uint8Array): Buffer {
  return extension("2.5.29.35", sequence(tagged(KEY_ID, id, "primitive")));
}

/** The host that a certificate is for. */
export function subjectAltName(host: string): Buffer {
  return extension("2.5.29.17", sequence(isIP(host) > 0 ? ipName(addressBytes(host)) : dnsName(host)));
}

/** The only hosts that certificates may be for: these names and what is below them, and these addresses. */
export function nameConstraints(hosts: readonly string[]): Buffer {
  const permitted = hosts.map((host) => (isIP(host) > 0 ? ipName(withMask(host)) : dnsName(host)));
  // A type without a permitted name would be unrestricted.
  const excluded = [4, 16]
    .filter((size) => !hosts.some((host) => isIP(host) > 0 && addressBytes(host).length === size))
    .map((size) => ipName(Buffer.alloc(2 * size)));
  if (!hosts.some((host) => isIP(host) === 0)) excluded.push(dnsName(""));
  const value = sequence(subtrees(PERMITTED, permitted), subtrees(EXCLUDED, excluded));
  return extension("2.5.29.30", value, true);
}

function subtrees(kind: number, names: readonly Uint8Array[]): Buffer {
  if (names.length === 0) return Buffer.alloc(0);
  return tagged(kind, Buffer.concat(names.map((name) => sequence(name))), "constructed");
}

function dnsName(host: string): Buffer {
  return tagged(DNS_NAME, Buffer.from(host, "latin1"), "primitive");
}

function ipName(bytes: Uint8Array): Buffer {
  return tagged(IP_ADDRESS, bytes, "primitive");
}

function withMask(address: string): Buffer {
  const bytes = addressBytes(address);
  return Buffer.concat([bytes, Buffer.alloc(bytes.length, 0xff)]);
}

function addressBytes(address: string): Buffer {
  const digits = isIPv4(address) ? 8 : 32;
  return Buffer.from((addressValue(address) ?? 0n).toString(16).padStart(digits, "0"), "hex");
}

import { isIPv4, isIPv6 } from "node:net";

/** Blocks of IPv4 that lead to no host of the public internet, or to a cloud's own services. */
const NOT_PUBLIC_V4: readonly (readonly [network: string, bits: number])[] = [
  ["0.0.0.0", 8], // this network; 0.0.0.0 itself is the host
  ["10.0.0.0", 8],
  ["100.64.0.0", 10], // carrier NAT; 100.100.100.200 is a metadata service
  ["127.0.0.0", 8],
  ["168.63.129.16", 32], // a cloud's host agent, on an address that looks public
  ["169.254.0.0", 16], // link-local; 169.254.169.254 is a metadata service
  ["172.16.0.0", 12],
  ["192.0.0.0", 24], // protocol assignments; 192.0.0.192 is a metadata service
  ["192.0.2.0", 24], // documentation
  ["192.31.196.0", 24],
  ["192.52.193.0", 24],
  ["192.88.99.0", 24], // 6to4 relays
  ["192.168.0.0", 16],
  ["192.175.48.0", 24],
  ["198.18.0.0", 15], // benchmarks
  ["198.51.100.0", 24], // documentation
  ["203.0.113.0", 24], // documentation
  ["224.0.0.0", 4], // multicast
  ["240.0.0.0", 4], // reserved, and broadcast
];

/** Blocks in 2000::/3, the public part of IPv6, that are not public. */
const NOT_PUBLIC_V6: readonly (readonly [network: string, bits: number])[] = [
  ["2001::", 23], // protocol assignments, Teredo among them
  ["2001:db8::", 32], // documentation
  ["2002::", 16], // 6to4: an IPv4 address that somebody else unpacks
  ["3fff::", 20], // documentation
];
/** Blocks that organisations use within their own networks. */
const PRIVATE: readonly (readonly [network: string, bits: number])[] = [
  ["10.0.0.0", 8],
  ["172.16.0.0", 12],
  ["192.168.0.0", 16],
  ["100.64.0.0", 10], // carrier NAT, and what overlay networks use
  ["fc00::", 7],
];
/** The services in these blocks that give a machine its identity and its keys. */
const METADATA: readonly (readonly [network: string, bits: number])[] = [
  ["100.100.100.200", 32],
  ["fd00:ec2::", 32],
  ["fd20:ce::254", 128],
  ["fd00:c1::a9fe:a9fe", 128],
  ["fd00:42::42", 128],
  ["fd00:a9fe:a9fe::", 48],
];
const GLOBAL_UNICAST = ["2000::", 3] as const;
const NAT64 = ["64:ff9b::", 96] as const;
const V4_MAPPED = ["::ffff:0:0", 96] as const;
const LOW_32 = 0xffff_ffffn;

/** Whether an address, as text, belongs to a host of the public internet. Other text does not. */
export function isPublicAddress(address: string): boolean {
  const value = addressValue(address);
  if (value === undefined) return false;
  return isIPv4(address) ? isPublicV4(value) : isPublicV6(value);
}

/**
 * Whether an address, as text, belongs to a private network: not to this machine, this link, or a service that gives a machine its identity. An IPv4
 * address that is mapped or translated into an IPv6 one counts as itself.
 */
export function isPrivateAddress(address: string): boolean {
  const value = hostValue(address);
  if (value === undefined) return false;
  const is4 = isIPv4(address) || holdsV4(addressValue(address) ?? 0n);
  const within = ([network, bits]: readonly [string, number]): boolean =>
    isIPv4(network) === is4 && isWithin(value, addressValue(network), bits, is4 ? 32 : 128);
  return PRIVATE.some(within) && !METADATA.some(within);
}

/** The number of an address, the same for each of its spellings; undefined for other text. */
export function addressValue(address: string): bigint | undefined {
  if (isIPv4(address)) return bytesValue(address.split(".").map(Number));
  if (!isIPv6(address) || address.includes("%")) return undefined;
  return v6Value(address);
}

/** As `addressValue`, but for an IPv4 address that is mapped or translated into an IPv6 one, the number of the IPv4 address. */
export function hostValue(address: string): bigint | undefined {
  const value = addressValue(address);
  if (value === undefined || isIPv4(address) || !holdsV4(value)) return value;
  return value & LOW_32;
}

function holdsV4(value: bigint): boolean {
  return [V4_MAPPED, NAT64].some(([network, bits]) => isWithin(value, addressValue(network), bits, 128));
}

function isPublicV4(value: bigint): boolean {
  return !NOT_PUBLIC_V4.some(([network, bits]) => isWithin(value, addressValue(network), bits, 32));
}

function isPublicV6(value: bigint): boolean {
  const within = ([network, bits]: readonly [string, number]): boolean =>
    isWithin(value, addressValue(network), bits, 128);
  if (holdsV4(value)) return isPublicV4(value & LOW_32);
  return within(GLOBAL_UNICAST) && !NOT_PUBLIC_V6.some(within);
}

function isWithin(value: bigint, network: bigint | undefined, bits: number, width: number): boolean {
  const shift = BigInt(width - bits);
  return network !== undefined && value >> shift === network >> shift;
}

function v6Value(address: string): bigint {
  const dotted = /(?:\d+\.){3}\d+$/.exec(address)?.[0];
  const low = dotted === undefined ? undefined : bytesValue(dotted.split(".").map(Number));
  const plain = low === undefined ? address : address.replace(/[\d.]+$/, `${hex(low >> 16n)}:${hex(low & 0xffffn)}`);
  const [head = "", tail] = plain.split("::");
  const left = groups(head);
  const right = groups(tail ?? "");
  const all = [...left, ...Array<bigint>(8 - left.length - right.length).fill(0n), ...right];
  return all.reduce((value, group) => (value << 16n) | group, 0n);
}

function groups(text: string): bigint[] {
  return text === "" ? [] : text.split(":").map((group) => BigInt(`0x${group}`));
}

function hex(value: bigint): string {
  return value.toString(16);
}

function bytesValue(bytes: readonly number[]): bigint {
  return bytes.reduce((value, byte) => (value << 8n) | BigInt(byte), 0n);
}

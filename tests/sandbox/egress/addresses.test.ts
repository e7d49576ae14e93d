import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { networkInterfaces } from "node:os";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { addressValue, isPublicAddress } from "../../../src/sandbox/egress/addresses.js";
import { isOwnAddress, PUBLIC_ROUTE } from "../../../src/sandbox/egress/dial.js";

const notPublic = [
  ["unspecified", "0.0.0.0", "0.1.2.3", "::", "::0"],
  ["loopback", "127.0.0.1", "127.255.255.254", "::1", "0:0:0:0:0:0:0:1"],
  ["private", "10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.0.1", "fc00::1", "fdff::1"],
  ["link-local", "169.254.0.1", "169.254.255.255", "fe80::1", "febf::1", "fec0::1"],
  ["metadata", "169.254.169.254", "fd00:ec2::254", "100.100.100.200", "168.63.129.16", "192.0.0.192", "169.254.170.2"],
  ["carrier NAT", "100.64.0.0", "100.127.255.255"],
  ["multicast", "224.0.0.1", "239.255.255.255", "ff02::1", "ff0e::1"],
  ["reserved", "240.0.0.1", "255.255.255.255", "192.0.0.8", "198.18.0.1", "198.19.255.255", "100::1", "4000::1"],
  ["documentation", "192.0.2.1", "198.51.100.1", "203.0.113.1", "2001:db8::1", "3fff::1", "3fff:fff::1"],
  ["mapped", "::ffff:127.0.0.1", "::ffff:7f00:1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::FFFF:A9FE:A9FE"],
  ["compatible", "::127.0.0.1", "::10.0.0.1", "::8.8.8.8", "::7f00:1"],
  ["translated", "64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b::10.0.0.1", "64:ff9b:1::8.8.8.8"],
  ["6to4", "2002:7f00:1::1", "2002:a9fe:a9fe::1", "2002:808:808::1"],
  ["Teredo", "2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2"],
  ["other protocols", "2001:2::1", "2001:10::1", "2001:20::1", "5f00::1"],
  [
    "no address",
    "",
    "localhost",
    "0",
    "1",
    "0x7f000001",
    "2130706433",
    "0177.0.0.1",
    "127.1",
    "127.0.0.1.",
    " 8.8.8.8",
  ],
  ["no address either", "8.8.8.8/32", "[2606:4700::1111]", "fe80::1%eth0", "2606:4700::1111%lo", "8.8.8.8\0", "::1::"],
] as const;

describe("what is not public", () => {
  test.each(notPublic.map(([kind, ...addresses]) => [kind, addresses] as const))("%s", (_kind, addresses) => {
    expect(addresses.filter((address) => isPublicAddress(address))).toEqual([]);
  });
});

test.each([
  ["1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0"],
  [
    "169.253.255.255",
    "169.255.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "192.167.255.255",
    "192.169.0.0",
    "198.17.255.255",
  ],
  ["198.20.0.0", "223.255.255.255", "168.63.129.15", "168.63.129.17", "192.0.1.0", "192.0.3.0"],
  [
    "2606:4700:4700::1111",
    "2a00:1450::1",
    "2400:cb00::",
    "2001:4860:4860::8888",
    "2003::1",
    "3ffe:ffff::1",
    "2620:0:1::",
  ],
  ["::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "64:ff9b::808:808"],
])("the neighbours of what is not public are: %s ...", (...addresses) => {
  expect(addresses.filter((address) => !isPublicAddress(address))).toEqual([]);
});

test("the host's own addresses are known as such, whatever they look like", () => {
  const own = Object.values(networkInterfaces()).flatMap((list) => (list ?? []).map(({ address }) => address));
  expect(own.length).toBeGreaterThan(0);
  const isReached = (address: string): boolean =>
    (["public", "private"] as const).some((scope) => PUBLIC_ROUTE.isReachable(address, scope));
  expect(own.filter((address) => !isOwnAddress(address) || isReached(address))).toEqual([]);
  expect(["1.1.1.1", "2606:4700:4700::1111"].filter((address) => !isReached(address))).toEqual([]);
});

test("an address of the host's own is not reached although it is public", ({ skip }) => {
  const dial = new URL("../../../dist/src/sandbox/egress/dial.js", import.meta.url);
  if (!existsSync(dial)) skip("there is no dist: type npm run build first");
  const program = `const { PUBLIC_ROUTE } = await import(${JSON.stringify(dial.href)});
    console.log(["9.9.9.9", "::ffff:9.9.9.9", "64:ff9b::9.9.9.9", "8.8.8.8"].map((address) => PUBLIC_ROUTE.isReachable(address)).join());`;
  const script = 'ip link set lo up && ip addr add 9.9.9.9/32 dev lo && exec "$0" --input-type=module --eval "$1"';
  const { status, stdout, stderr } = spawnSync("unshare", ["-rn", "sh", "-c", script, process.execPath, program]);
  // A network of its own, in which an address can be had.
  if (status !== 0 && /unshare|ip: not found/.test(String(stderr))) skip(`no network of its own: ${stderr}`);
  expect(String(stdout)).toBe("false,false,false,true\n");
});

test("every spelling of an IPv6 address has the same value", () => {
  const groups = fc.array(fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 0xffff })), {
    minLength: 8,
    maxLength: 8,
  });
  fc.assert(
    fc.property(groups, (all) => {
      const long = all.map((group) => group.toString(16).padStart(4, "0")).join(":");
      const short = new URL(`http://[${long}]`).hostname.slice(1, -1);
      const [high = 0, low = 0] = all.slice(6);
      const dotted = `${long.split(":").slice(0, 6).join(":")}:${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`;
      const value = BigInt(`0x${long.replaceAll(":", "")}`);
      expect([long, short, long.toUpperCase(), dotted].map(addressValue)).toEqual([value, value, value, value]);
    }),
  );
});

test("an IPv4 address is public inside a mapped or translated one just when it is by itself", () => {
  fc.assert(
    fc.property(fc.ipV4(), (address) => {
      const isPublic = isPublicAddress(address);
      expect(isPublicAddress(`::ffff:${address}`)).toBe(isPublic);
      expect(isPublicAddress(`64:ff9b::${address}`)).toBe(isPublic);
      expect(isPublicAddress(`::${address}`)).toBe(false);
    }),
  );
});

test("anything may be asked about", () => {
  fc.assert(
    fc.property(
      fc.oneof(fc.string(), fc.ipV6(), fc.string({ unit: fc.constantFrom(..."0123456789abcdef:.%") })),
      (text) => {
        expect(typeof isPublicAddress(text)).toBe("boolean");
      },
    ),
  );
});

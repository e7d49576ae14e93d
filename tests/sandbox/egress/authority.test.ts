import { execFile } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { connect, createServer, type PeerCertificate, rootCertificates, type Server } from "node:tls";
import { promisify } from "node:util";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  distinguishedName,
  hashedName,
  makeKeyPair,
  signCertificate,
} from "../../../src/sandbox/egress/authority/certificate.js";
import { integer, oid, sequence, time } from "../../../src/sandbox/egress/authority/der.js";
import {
  authorityKeyId,
  basicConstraints,
  keyUsage,
  nameConstraints,
  subjectAltName,
  subjectKeyId,
} from "../../../src/sandbox/egress/authority/extensions.js";
import { type Authority, makeAuthority, makeTrust } from "../../../src/sandbox/egress/authority.js";
import { createScratch, type Scratch } from "../../support/scratch.js";

const run = promisify(execFile);
const DAY = 24 * 3_600_000;
const NAMES = ["api.example.com", "*.Wild.example.org", "xn--bcher-kva.example", "203.0.113.7", "2001:db8::7"];

let scratch: Scratch;
let authority: Authority;
let server: Server;
let host = "";

beforeAll(async () => {
  scratch = createScratch();
  authority = makeAuthority(NAMES);
  server = createServer({ SNICallback: (_name, done) => done(null, authority.contextFor(host)) });
  server.on("tlsClientError", () => undefined);
  server.on("secureConnection", (socket) => socket.on("error", () => undefined).end("hello"));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
});

afterAll(() => {
  server.close();
  scratch.remove();
});

const port = (): number => (server.address() as AddressInfo).port;

/** The certificate that a client gets for a host, without checking it. */
async function leafFor(name: string): Promise<X509Certificate> {
  host = name;
  // An address never is a server name, so the client asks for another and the server knows better, as the proxy does.
  const socket = connect({ host: "127.0.0.1", port: port(), servername: "any.example", rejectUnauthorized: false });
  await once(socket, "secureConnect");
  const leaf = socket.getPeerX509Certificate() as X509Certificate;
  socket.destroy();
  return leaf;
}

/** What openssl says of a leaf, at a moment. */
async function verify(leaf: string, certificate = authority.certificate, at = Date.now()): Promise<string> {
  const [ca, file] = [join(scratch.path, "ca.pem"), join(scratch.path, "leaf.pem")];
  writeFileSync(ca, certificate);
  writeFileSync(file, leaf);
  const when = ["-attime", String(Math.floor(at / 1000))];
  const kind = ["-x509_strict", "-purpose", "sslserver", "-no-CApath", "-no-CAstore"];
  const result = await run("openssl", ["verify", ...kind, ...when, "-CAfile", ca, file]).catch(
    (error: { stdout: string; stderr: string }) => error,
  );
  return `${result.stdout}${result.stderr}`;
}

async function shown(certificate: string, ...fields: string[]): Promise<string> {
  const path = join(scratch.path, "shown.pem");
  writeFileSync(path, certificate);
  return (await run("openssl", ["x509", "-noout", "-in", path, ...fields])).stdout;
}

describe("the authority's certificate", () => {
  test("says what it may sign, in extensions that no client may ignore", async () => {
    const text = await shown(authority.certificate, "-text");
    expect(text).toMatch(/Basic Constraints: critical\s+CA:TRUE, pathlen:0\n/);
    expect(text).toMatch(/Key Usage: critical\s+Certificate Sign\n/);
    expect(text).toMatch(/Extended Key Usage: \s+TLS Web Server Authentication\n/);
    expect(text).toMatch(/Public Key Algorithm: id-ecPublicKey\s+Public-Key: \(256 bit\)/);
    const constraints = /Name Constraints: critical\n([\s\S]*?)X509v3/.exec(text)?.[1]?.replace(/\s+/g, " ");
    expect(constraints).toBe(
      " Permitted: DNS:api.example.com DNS:wild.example.org DNS:xn--bcher-kva.example" +
        " IP:203.0.113.7/255.255.255.255 IP:2001:DB8:0:0:0:0:0:7/FFFF:FFFF:FFFF:FFFF:FFFF:FFFF:FFFF:FFFF ",
    );
  });

  test("excludes what it has no names of", async () => {
    const names = await shown(makeAuthority(["a.example"]).certificate, "-ext", "nameConstraints");
    expect(names.replace(/\s+/g, " ")).toBe(
      "X509v3 Name Constraints: critical Permitted: DNS:a.example Excluded: IP:0.0.0.0/0.0.0.0 IP:0:0:0:0:0:0:0:0/0:0:0:0:0:0:0:0 ",
    );
    const addresses = await shown(makeAuthority(["203.0.113.7"]).certificate, "-ext", "nameConstraints");
    expect(addresses.replace(/\s+/g, " ")).toBe(
      "X509v3 Name Constraints: critical Permitted: IP:203.0.113.7/255.255.255.255 Excluded: IP:0:0:0:0:0:0:0:0/0:0:0:0:0:0:0:0 DNS: ",
    );
  });

  test("differs from every other: key and serial number", () => {
    const [one, other] = [makeAuthority(["a.example"]), makeAuthority(["a.example"])].map(
      ({ certificate }) => new X509Certificate(certificate),
    );
    expect(one?.publicKey.equals(other?.publicKey as never)).toBe(false);
    expect(one?.serialNumber).not.toBe(other?.serialNumber);
    expect(one?.serialNumber).toMatch(/^[4-7][0-9A-F]{31}$/);
  });

  test.each([[], [""], ["*"], ["*.203.0.113.7"], ["a b.example"], ["https://a.example"], ["a.example:443"]])(
    "is not made for %j",
    (...names) => {
      expect(() => makeAuthority(names.filter((name) => name !== undefined))).toThrow(/authority/);
    },
  );
});

describe("a certificate for a host", () => {
  test.each(["api.example.com", "a.wild.example.org", "a.b.wild.example.org", "203.0.113.7", "2001:db8::7"])(
    "stands the strictest check of openssl: %s",
    async (name) => {
      expect(await verify((await leafFor(name)).toString())).toMatch(/leaf\.pem: OK\n$/);
    },
  );

  test("names the host, for servers only", async () => {
    const leaf = await leafFor("API.example.com.");
    const text = await shown(leaf.toString(), "-text");
    expect(leaf.subjectAltName).toBe("DNS:api.example.com");
    expect(text).toMatch(/Basic Constraints: critical\s+CA:FALSE\n/);
    expect(text).toMatch(/Key Usage: critical\s+Digital Signature\n/);
    expect(text).toMatch(/Extended Key Usage: \s+TLS Web Server Authentication\n/);
    expect((await leafFor("2001:DB8:0::7")).subjectAltName).toBe("IP Address:2001:DB8:0:0:0:0:0:7");
  });

  test("has a key of its own, and is kept", async () => {
    expect(authority.contextFor("api.example.com")).toBe(authority.contextFor("API.EXAMPLE.COM."));
    const [one, other] = [await leafFor("a.wild.example.org"), await leafFor("b.wild.example.org")];
    expect(one.publicKey.equals(other.publicKey)).toBe(false);
    expect((await leafFor("a.wild.example.org")).serialNumber).toBe(one.serialNumber);
  });

  test("is valid although a clock is off by a day, and no longer than browsers accept", async () => {
    const leaf = await leafFor("api.example.com");
    for (const days of [-1.9, -1, 1, 29]) {
      expect(await verify(leaf.toString(), authority.certificate, Date.now() + days * DAY)).toMatch(/: OK\n$/);
    }
    expect(await verify(leaf.toString(), authority.certificate, Date.now() - 3 * DAY)).toMatch(/not yet valid/);
    expect(Date.parse(leaf.validTo) - Date.parse(leaf.validFrom)).toBeLessThan(398 * DAY);
  });

  test("is made anew long before it ends", async () => {
    let now = Date.now();
    const lasting = makeAuthority(["a.example"], () => now);
    const first = lasting.contextFor("a.example");
    now += 29 * DAY;
    expect(lasting.contextFor("a.example")).toBe(first);
    now += 2 * DAY;
    expect(lasting.contextFor("a.example")).not.toBe(first);
  });

  test("is not kept for ever, where the inside thinks of hosts", () => {
    const wild = makeAuthority(["*.example"]);
    const first = wild.contextFor("a.example");
    for (let n = 0; n < 255; n++) wild.contextFor(`${n}.example`);
    expect(wild.contextFor("a.example")).toBe(first);
    for (let n = 0; n < 256; n++) wild.contextFor(`other-${n}.example`);
    expect(wild.contextFor("a.example")).not.toBe(first);
  });

  test.each(["example.com", "sub.api.example.com", "wild.example.org", "evil.example", "203.0.113.8", "", "a b"])(
    "is not made for %j",
    (name) => {
      expect(() => authority.contextFor(name)).toThrow(/not for/);
    },
  );

  test("would be worth nothing for another host", async () => {
    const [issuer, own] = [makeKeyPair(), makeKeyPair()];
    const name = distinguishedName("x");
    const dates = { notBefore: new Date(Date.now() - DAY), notAfter: new Date(Date.now() + DAY) };
    const sign = (publicInfo: Buffer, subject: Buffer, ...extensions: Buffer[]): string =>
      signCertificate({ issuer: name, subject, publicInfo, extensions, ...dates }, issuer.privateKey);
    const ids = [subjectKeyId(issuer.id), authorityKeyId(issuer.id)];
    const names = nameConstraints(["a.example"]);
    const ca = sign(issuer.publicInfo, name, basicConstraints(true), keyUsage(true), names, ...ids);
    const leaf = (host: string): string =>
      sign(own.publicInfo, distinguishedName(), subjectAltName(host), subjectKeyId(own.id), authorityKeyId(issuer.id));
    expect(await verify(leaf("a.example"), ca)).toMatch(/: OK\n$/);
    expect(await verify(leaf("evil.example"), ca)).toMatch(/permitted subtree violation/);
    expect(await verify(leaf("203.0.113.7"), ca)).toMatch(/excluded subtree violation/);
    expect(await verify(leaf("::1"), ca)).toMatch(/excluded subtree violation/);
  });

  test("of one authority is worth nothing to those who trust another, even under its names", async () => {
    const other = makeAuthority(NAMES);
    expect(await verify((await leafFor("api.example.com")).toString(), other.certificate)).toMatch(/error/);
  });
});

describe("a client", () => {
  test("of Node trusts it, for this host only", async () => {
    host = "api.example.com";
    const reach = (servername: string): Promise<PeerCertificate> =>
      new Promise((resolve, reject) => {
        const socket = connect({ host: "127.0.0.1", port: port(), servername, ca: authority.certificate });
        socket.once("secureConnect", () => resolve(socket.getPeerCertificate()));
        socket.once("error", reject);
      });
    expect((await reach("api.example.com")).subjectaltname).toBe("DNS:api.example.com");
    await expect(reach("other.example.com")).rejects.toMatchObject({ code: "ERR_TLS_CERT_ALTNAME_INVALID" });
  });

  test("of Python trusts it, with every check it has", async () => {
    host = "a.wild.example.org";
    const ca = join(scratch.path, "python-ca.pem");
    writeFileSync(ca, authority.certificate);
    const script = `
import socket, ssl, sys
context = ssl.create_default_context(cafile=sys.argv[1])
context.verify_flags |= ssl.VERIFY_X509_STRICT
with context.wrap_socket(socket.create_connection(("127.0.0.1", int(sys.argv[2]))), server_hostname=sys.argv[3]) as s:
    print(s.read().decode(), s.version())`;
    const argv = ["-c", script, ca, String(port()), host];
    expect((await run("python3", argv)).stdout).toBe("hello TLSv1.3\n");
  });
});

describe("what is needed to trust it", () => {
  const trust = makeTrust(["a.example"]);
  const { certificate } = trust.authority;
  const write = (files: ReadonlyMap<string, Uint8Array>): string => {
    for (const [name, content] of files) writeFileSync(join(scratch.path, name), content);
    return scratch.path;
  };
  const count = (bundle: Uint8Array | undefined): number =>
    Buffer.from(bundle ?? [])
      .toString()
      .match(/-----BEGIN/g)?.length ?? 0;

  test("has the name by which OpenSSL finds it in a folder", async () => {
    expect(hashedName()).toBe(`${(await shown(certificate, "-hash")).trim()}.0`);
  });

  test("contains the system's authorities; those of Node where the system has none", () => {
    const [some = "", ...rest] = rootCertificates;
    expect(count(trust.files(`# one\n${some}\n# none\n`).get("bundle.pem"))).toBe(2);
    for (const none of [undefined, "", "# no certificate\n"]) {
      expect(count(trust.files(none).get("bundle.pem"))).toBe(rest.length + 2);
    }
  });

  test("leaves out what is no certificate, for which Java would refuse the rest", () => {
    const broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----";
    expect(count(trust.files(`${broken}\n${rootCertificates[0]}`).get("bundle.pem"))).toBe(2);
  });

  test("is a store that Java's own tool reads and finds unchanged", async ({ skip }) => {
    if (
      await run("keytool", ["-help"]).then(
        () => false,
        (error) => error.code === "ENOENT",
      )
    ) {
      skip("this machine has no Java");
    }
    const store = join(write(trust.files(undefined)), "authorities.jks");
    const list = ["-list", "-v", "-keystore", store, "-storetype", "JKS"];
    const { stdout } = await run("keytool", [...list, "-storepass", "changeit"], { maxBuffer: 16 << 20 });
    expect(stdout).toContain(`Your keystore contains ${rootCertificates.length + 1} entries`);
    expect(stdout).toContain(new X509Certificate(certificate).fingerprint256);
    await expect(run("keytool", [...list, "-storepass", "another"])).rejects.toThrow();
  });
});

describe("DER", () => {
  test("has the shortest form of a length and of a number", () => {
    const lengths = [0, 127, 128, 255, 256, 65_536].map((size) => sequence(Buffer.alloc(size)).subarray(0, 5));
    expect(lengths.map((bytes) => bytes.toString("hex"))).toEqual([
      "3000",
      "307f000000",
      "3081800000",
      "3081ff0000",
      "3082010000",
      "3083010000",
    ]);
    expect(
      [[0], [0, 1], [0x7f], [0x80], [0, 0x80, 0]].map((bytes) => integer(Buffer.from(bytes)).toString("hex")),
    ).toEqual(["020100", "020101", "02017f", "02020080", "02030080" + "00"]);
    expect(oid("1.2.840.10045.4.3.2").toString("hex")).toBe("06082a8648ce3d040302");
  });

  test("writes the year with four digits from 2050", () => {
    const text = (year: number): string => time(new Date(Date.UTC(year, 0, 2, 3, 4, 5, 6))).toString("latin1");
    expect(text(2049)).toBe("\x17\x0d490102030405Z");
    expect(text(2050)).toBe("\x18\x0f20500102030405Z");
  });

  test("of any hosts is read by others", () => {
    const label = fc.stringMatching(/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/);
    const name = fc.array(label, { minLength: 1, maxLength: 3 }).map((labels) => `${labels.join(".")}.example`);
    fc.assert(
      fc.property(fc.array(name, { minLength: 1, maxLength: 40 }), (names) => {
        const made = makeAuthority(names);
        expect(new X509Certificate(made.certificate).verify(new X509Certificate(made.certificate).publicKey)).toBe(
          true,
        );
        made.contextFor(names[0] ?? "");
      }),
      { numRuns: 50 },
    );
  });
});

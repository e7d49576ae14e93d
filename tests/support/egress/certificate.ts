import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import { join } from "node:path";

/** A key and a certificate that signs itself, for these names. */
export interface Certificate {
  key: Buffer;
  cert: Buffer;
  /** Path of the certificate, for programs that want a file. */
  path: string;
}

/** Makes a certificate in a directory, with the openssl program. */
export function createCertificate(directory: string, names: readonly string[]): Certificate {
  const [key, cert] = [join(directory, "key.pem"), join(directory, "cert.pem")];
  const subject = [
    "-subj",
    `/CN=${names[0]}`,
    "-addext",
    `subjectAltName=${names.map((name) => `${isIP(name) > 0 ? "IP" : "DNS"}:${name}`)}`,
  ];
  // Some clients refuse a server that shows the certificate of an authority.
  const leaf = ["-addext", "basicConstraints=critical,CA:FALSE"];
  const kind = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
  execFileSync("openssl", ["req", ...kind, "-keyout", key, "-out", cert, ...subject, ...leaf], { stdio: "ignore" });
  return { key: readFileSync(key), cert: readFileSync(cert), path: cert };
}

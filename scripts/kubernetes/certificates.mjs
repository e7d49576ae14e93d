import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ADDRESS, SERVICE_ADDRESS } from "./control-plane.mjs";

/** The cluster's authority, a certificate for each of its programs, the key of service accounts, and the tokens of users. */
export function makeCredentials({ folder, write }, nodes) {
  const place = join(folder, "keys");
  mkdirSync(place);
  const keys = (name) => join(place, name);
  const openssl = (...args) => execFileSync("openssl", args, { stdio: ["ignore", "ignore", "pipe"] });
  const curve = ["-pkeyopt", "ec_paramgen_curve:P-256"];

  /** `subject` is in the order of the certificate; `names` are other names of a server. */
  function issue(name, subject, names) {
    const isAuthority = name === "ca";
    const uses = isAuthority
      ? ["basicConstraints = critical, CA:TRUE", "keyUsage = critical, keyCertSign, cRLSign"]
      : ["keyUsage = critical, digitalSignature", "extendedKeyUsage = serverAuth, clientAuth"];
    const alternatives = names === undefined ? [] : [`subjectAltName = ${names.join(", ")}`];
    const subjects = Object.entries(subject).map(([key, value]) => `${key} = ${value}`);
    const lines = [
      "[req]",
      "prompt = no",
      "distinguished_name = subject",
      "x509_extensions = uses",
      "[subject]",
      ...subjects,
      "[uses]",
      ...uses,
      ...alternatives,
    ];
    const config = write(`keys/${name}.cnf`, `${lines.join("\n")}\n`);
    const signer = isAuthority ? [] : ["-CA", keys("ca.crt"), "-CAkey", keys("ca.key")];
    openssl(
      ...["req", "-x509", "-new", "-nodes", "-newkey", "ec", ...curve, "-days", "30", "-config", config],
      ...["-keyout", keys(`${name}.key`), "-out", keys(`${name}.crt`), ...signer],
    );
  }

  issue("ca", { CN: "glovebox-test" });
  const local = ["DNS:localhost", "DNS:kubernetes.default.svc", "IP:127.0.0.1"];
  issue("server", { CN: "kube-apiserver" }, [...local, `IP:${ADDRESS}`, `IP:${SERVICE_ADDRESS}`]);
  issue("to-kubelet", { O: "system:masters", CN: "kube-apiserver-kubelet-client" });
  issue("controllers", { CN: "system:kube-controller-manager" });
  issue("scheduler", { CN: "system:kube-scheduler" });
  for (const { name, address } of nodes) {
    issue(name, { O: "system:nodes", CN: `system:node:${name}` }, [`DNS:${name}`, `IP:${address}`]);
  }
  openssl("genpkey", "-algorithm", "EC", ...curve, "-out", keys("accounts.key"));
  openssl("pkey", "-in", keys("accounts.key"), "-pubout", "-out", keys("accounts.pub"));

  const ca = readFileSync(keys("ca.crt"), "utf8");
  const tokens = { admin: randomBytes(16).toString("hex"), weak: randomBytes(16).toString("hex") };
  const tokenFile = write("tokens.csv", `${tokens.admin},admin,admin,system:masters\n${tokens.weak},weak,weak\n`);
  return { keys, ca, tokens, tokenFile, accountKey: keys("accounts.key"), certificate, writeConfig };

  /** The part of a kubeconfig that says who someone is. */
  function certificate(name) {
    return { "client-certificate": keys(`${name}.crt`), "client-key": keys(`${name}.key`) };
  }

  function writeConfig(name, server, user) {
    return write(name, {
      apiVersion: "v1",
      kind: "Config",
      clusters: [
        {
          name: "glovebox-test",
          cluster: { server, "certificate-authority-data": Buffer.from(ca).toString("base64") },
        },
      ],
      users: [{ name: "glovebox-test", user }],
      contexts: [{ name: "glovebox-test", context: { cluster: "glovebox-test", user: "glovebox-test" } }],
      "current-context": "glovebox-test",
    });
  }
}

import { mkdirSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { findCluster } from "../../../../src/sandbox/backends/kubernetes/client/kubeconfig.js";
import { expectRefused } from "../../../support/refused.js";
import { createScratch } from "../../../support/scratch.js";

const scratch = createScratch();
afterAll(() => scratch.remove());

let count = 0;
/** Writes a kubeconfig in a folder of its own, and returns its path. */
function write(document: object | string): string {
  const folder = join(scratch.path, `config-${++count}`);
  mkdirSync(folder);
  const path = join(folder, "config");
  writeFileSync(path, typeof document === "string" ? document : JSON.stringify(document));
  return path;
}

function config(cluster: object = {}, user: object = {}, context: object = {}): object {
  return {
    "current-context": "here",
    clusters: [{ name: "c", cluster: { server: "https://api.example:6443", ...cluster } }],
    users: [{ name: "u", user }],
    contexts: [{ name: "here", context: { cluster: "c", user: "u", ...context } }],
  };
}

const inFile = (path: string, more = {}): ReturnType<typeof findCluster> =>
  findCluster({ kubeconfig: path, ...more }, {});

describe("which cluster", () => {
  test("the current context of the file that is named, with its namespace", async () => {
    const found = await inFile(write(config({}, { token: "t" }, { namespace: "team" })));
    expect(found).toMatchObject({ name: "here", namespace: "team", isVerified: true, user: { token: "t" } });
    expect(found.server.href).toBe("https://api.example:6443/");
    expect((await inFile(write(config()), { namespace: "other" })).namespace).toBe("other");
    expect((await inFile(write(config()))).namespace).toBe("default");
  });

  test("several files are one: the first that names something wins, and each has relative paths of its own", async () => {
    const first = write({ "current-context": "mine", users: [{ name: "u", user: { tokenFile: "token" } }] });
    const second = write({
      "current-context": "here",
      clusters: [{ name: "c", cluster: { server: "https://two.example", "certificate-authority": "ca.pem" } }],
      users: [{ name: "u", user: { token: "second" } }],
      contexts: [{ name: "mine", context: { cluster: "c", user: "u" } }],
    });
    writeFileSync(join(second, "..", "ca.pem"), "CA of two");
    const KUBECONFIG = [first, join(scratch.path, "missing"), second].join(delimiter);
    const found = await findCluster({}, { KUBECONFIG });
    expect(found).toMatchObject({ name: "mine", ca: "CA of two", user: { tokenFile: join(first, "..", "token") } });
    expect(found.user.token).toBeUndefined();
  });

  test("data in the file wins over a path, and is decoded", async () => {
    const data = (text: string): string => Buffer.from(text).toString("base64");
    const found = await inFile(
      write(
        config(
          {
            "certificate-authority-data": data("CA"),
            "certificate-authority": "/nowhere",
            "tls-server-name": "kubernetes",
          },
          { "client-certificate-data": data("CERT"), "client-key": "key.pem" },
        ),
      ),
    );
    expect(found).toMatchObject({ ca: "CA", serverName: "kubernetes", user: { certificate: { text: "CERT" } } });
    expect(found.user.key).toEqual({ path: join(scratch.path, `config-${count}`, "key.pem") });
  });

  test("who is impersonated goes into headers", async () => {
    const user = { token: "t", as: "jane", "as-uid": "7", "as-groups": ["a", "b"], "as-user-extra": { "x/y": ["1"] } };
    expect((await inFile(write(config({}, user)))).user.as).toEqual({
      "Impersonate-User": "jane",
      "Impersonate-Uid": "7",
      "Impersonate-Group": ["a", "b"],
      "Impersonate-Extra-x%2Fy": ["1"],
    });
  });

  test("a program's entry keeps its words, and a relative one starts at the file", async () => {
    const exec = {
      apiVersion: "client.authentication.k8s.io/v1beta1",
      command: "./login",
      args: ["--now"],
      env: [{ name: "A", value: "b" }],
      provideClusterInfo: true,
    };
    const { user } = await inFile(write(config({ "insecure-skip-tls-verify": true }, { exec })));
    const command = join(scratch.path, `config-${count}`, "login");
    expect(user.exec).toMatchObject({ command, args: ["--now"], env: { A: "b" } });
    expect(user.exec?.cluster).toMatchObject({ server: "https://api.example:6443/", "insecure-skip-tls-verify": true });
  });

  test("an address without TLS is one of this machine", async () => {
    expect((await inFile(write(config({ server: "http://127.0.0.1:8001" })))).server.port).toBe("8001");
    await expectRefused(inFile(write(config({ server: "http://api.example" }))), "unsupported", "without TLS");
  });
});

describe("what can't be used is refused with the reason", () => {
  test("no kubeconfig at all", async () => {
    const HOME = process.env["HOME"];
    process.env["HOME"] = scratch.path;
    try {
      await expectRefused(findCluster({}, {}), "unauthenticated", "there is no kubeconfig");
    } finally {
      if (HOME === undefined) delete process.env["HOME"];
      else process.env["HOME"] = HOME;
    }
  });

  test("a file or a context that does not exist, with those that do", async () => {
    await expectRefused(inFile(join(scratch.path, "none")), "not_found", "kubernetes.kubeconfig");
    await expectRefused(findCluster({}, { KUBECONFIG: "/nowhere/config" }), "not_found", "/nowhere/config");
    const error = await inFile(write(config()), { context: "there" }).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: "not_found", hint: "known contexts: here" });
  });

  test.each<[string, object, object, string]>([
    ["a proxy", { "proxy-url": "http://proxy:3128" }, {}, "unsupported"],
    ["no server", { server: "" }, {}, "invalid_argument"],
    ["an old auth-provider", {}, { "auth-provider": { name: "gcp" } }, "unsupported"],
    [
      "a program of an old version",
      {},
      { exec: { apiVersion: "client.authentication.k8s.io/v1alpha1", command: "x" } },
      "unsupported",
    ],
    [
      "a program that wants a terminal",
      {},
      { exec: { apiVersion: "client.authentication.k8s.io/v1", command: "x", interactiveMode: "Always" } },
      "unsupported",
    ],
    ["a CA that isn't there", { "certificate-authority": "none.pem" }, {}, "unauthenticated"],
  ])("%s", async (_, cluster, user, code) => {
    await expectRefused(inFile(write(config(cluster, user))), code);
  });

  test("a file that is no YAML, without a line of it in the message", async () => {
    const error = (await inFile(write("token: [secret-in-the-file")).catch((reason: unknown) => reason)) as Error;
    expect(error).toMatchObject({ code: "invalid_argument" });
    expect(`${error.message} ${String(error.cause)}`).not.toContain("secret-in-the-file");
  });
});

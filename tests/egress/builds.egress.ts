import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createLocalSandbox } from "../../src/sandbox/backends/local.js";
import { egressInternals } from "../../src/sandbox/egress/open-egress.js";
import type { Sandbox } from "../../src/sandbox/types.js";
import { createCertificate } from "../support/egress/certificate.js";
import { serveGit } from "../support/egress/git-server.js";
import { listen } from "../support/egress/running-proxy.js";
import { PACKAGE, packFiles } from "../support/harness/tiny-registry.js";
import { createScratch, git, type Scratch } from "../support/scratch.js";
import { hasCommand } from "../support/walks/fresh-debian.js";

const HOST = "packages.test";
const VALUE = "kept-outside-0123456789";
/** That of Debian: others may be where a sandbox does not see them. */
const CARGO = "/usr/bin/cargo";

let scratch: Scratch;
let server: Server;
let port: number;
let sandbox: Sandbox;
/** Method, path and key of each request. */
const asked: string[] = [];

const base = (): string => `https://${HOST}:${port}`;

/** A package whose installation builds something by make, whose recipes ask the server: by curl as it is, and without any variable of the sandbox. */
const PACKED = {
  "package.json": JSON.stringify({ name: PACKAGE, version: "1.0.0", scripts: { install: "make -f build.mk" } }),
  "build.mk": [
    "all:",
    '\tcurl -sS -H "authorization: $(PACKAGES_TOKEN)" $(BASE)/by-make',
    '\tenv -i PATH="$(PATH)" curl -sS -H "authorization: $(PACKAGES_TOKEN)" $(BASE)/without-variables',
    "",
  ].join("\n"),
};
const tarball = packFiles(PACKED);

function serve(request: IncomingMessage, response: ServerResponse): void {
  const { method, url = "", headers } = request;
  asked.push(`${method} ${url.replace(/\?.*/, "")} ${headers.authorization ?? "none"}`);
  if (url.startsWith("/index.git/")) {
    void serveGit(join(scratch.path, "served"), request, response);
  } else if (url.endsWith(".tgz")) {
    response.end(tarball);
  } else if (url === `/${PACKAGE}`) {
    const dist = { tarball: `${base()}/${PACKAGE}/-/${PACKAGE}-1.0.0.tgz` };
    const versions = { "1.0.0": { name: PACKAGE, version: "1.0.0", dist, hasInstallScript: true } };
    response.end(JSON.stringify({ name: PACKAGE, "dist-tags": { latest: "1.0.0" }, versions }));
  } else response.end('{"ok":true}');
}

beforeAll(async () => {
  scratch = createScratch();
  const certificate = createCertificate(scratch.path, [HOST]);
  server = createServer(certificate, serve);
  server.on("tlsClientError", () => undefined);
  port = await listen(server);
  egressInternals.route = { lookup: async () => ["127.0.0.1"], isReachable: (address) => address === "127.0.0.1" };
  egressInternals.ca = [certificate.cert.toString()];
  process.env["PACKAGES_TOKEN"] = VALUE;
  const hosts = [`${HOST}:${port}`];
  sandbox = await createLocalSandbox({
    network: { allow: hosts },
    secrets: { PACKAGES_TOKEN: { hosts, header: "authorization" } },
    env: { BASE: base() },
  });
});

afterAll(async () => {
  await sandbox.teardown();
  server.close();
  server.closeAllConnections();
  scratch.remove();
  delete egressInternals.route;
  delete egressInternals.ca;
  delete process.env["PACKAGES_TOKEN"];
});

test("make, a shell, npm, make again and curl: each level has the key's placeholder, and trusts the proxy", async ({
  skip,
}) => {
  const missing = ["make", "npm", "curl"].filter((name) => !hasCommand(name));
  if (missing.length > 0) skip(`this machine has no ${missing.join(", ")}`);
  await sandbox.writeFiles({
    Makefile: "all:\n\tsh -c 'npm install --no-audit --no-fund --no-update-notifier --foreground-scripts'\n",
    "package.json": JSON.stringify({ name: "outer", version: "1.0.0", dependencies: { [PACKAGE]: "1.0.0" } }),
    ".npmrc": `registry=${base()}/\n//${HOST}:${port}/:_authToken=\${PACKAGES_TOKEN}\n`,
  });
  const { exitCode, stdout, stderr } = await sandbox.exec("make", []);
  expect(exitCode, `${stdout}${stderr}`).toBe(0);
  expect(asked).toEqual([
    `GET /${PACKAGE} Bearer ${VALUE}`,
    `GET /${PACKAGE}/-/${PACKAGE}-1.0.0.tgz Bearer ${VALUE}`,
    `GET /by-make ${VALUE}`,
    `GET /without-variables ${VALUE}`,
  ]);
  const search = `grep -rsl 'kept[-]outside' . "$HOME" /tmp; grep -rsl _authToken . | sort`;
  expect((await sandbox.shell(search)).stdout).toBe("./.npmrc\n");
});

test("cargo, in Rust, reads an index by libgit2 and asks the registry by libcurl", async ({ skip }) => {
  if (!existsSync(CARGO)) skip(`this machine has no ${CARGO}`);
  const repository = join(scratch.path, "served", "index.git");
  mkdirSync(repository, { recursive: true });
  git(repository, "init", "-q", "--bare", "-b", "master");
  const work = join(scratch.path, "index");
  git(scratch.path, "clone", "-q", repository, work);
  writeFileSync(join(work, "config.json"), JSON.stringify({ dl: `${base()}/dl`, api: base() }));
  git(work, "add", "-A");
  git(work, "commit", "-q", "-m", "index");
  git(work, "push", "-q", "origin", "HEAD:master");
  asked.length = 0;
  const yank = `${CARGO} yank thing --version 1.0.0 --index "$BASE/index.git" --token "$PACKAGES_TOKEN"`;
  const { exitCode, stderr } = await sandbox.shell(yank);
  expect(exitCode, stderr).toBe(0);
  expect(asked.some((line) => line.startsWith("GET /index.git/info/refs"))).toBe(true);
  expect(asked.at(-1)).toBe(`DELETE /api/v1/crates/thing/1.0.0/yank ${VALUE}`);
});

import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ExecResult } from "../../../contracts/types.js";
import { createLocalSandbox } from "../../../src/sandbox/backends/local.js";
import { egressEnv } from "../../../src/sandbox/egress/env.js";
import type { Sandbox } from "../../../src/sandbox/types.js";
import { GREETING, startTrustedServer, type TrustedServer } from "../../support/egress/trusted-server.js";
import { createScratch, type Scratch } from "../../support/scratch.js";

const NAME = "api.trusted.test";

let scratch: Scratch;
let server: TrustedServer;
let sandbox: Sandbox;

beforeAll(async () => {
  scratch = createScratch();
  server = await startTrustedServer([NAME]);
  sandbox = await createLocalSandbox({ network: { allow: [`${NAME}:${server.port}`] } });
});

afterAll(async () => {
  await sandbox.teardown();
  server.close();
  scratch.remove();
});

const isHere = (program: string): boolean => spawnSync("which", [program]).status === 0;
const url = (): string => `https://${NAME}:${server.port}/`;

const PYTHON = "import sys, urllib.request; sys.stdout.write(urllib.request.urlopen(sys.argv[1]).read().decode())";
/** Node 20 has no proxy of its own. */
const NODE = `
  const http = require("http"), https = require("https"), { hostname, port } = new URL(process.env.https_proxy), url = new URL(process.argv[1]);
  http.request({ host: hostname, port, method: "CONNECT", path: url.host })
    .on("connect", (_, socket) => https.get({ socket, agent: false, host: url.hostname }, (r) => r.pipe(process.stdout)).on("error", (e) => { console.error(e.code); process.exitCode = 1; }))
    .end();`;
const JAVA = `
  public class Get {
    public static void main(String[] args) throws Exception {
      new java.net.URL(args[0]).openStream().transferTo(System.out);
    }
  }`;

/** Programs that read a page, by their names; what they print is the page. */
const CLIENTS: Record<string, (page: string) => string[]> = {
  curl: (page) => ["curl", "-sS", page],
  wget: (page) => ["wget", "-qO-", page],
  git: (page) => ["git", "ls-remote", `${page}repository.git`],
  python3: (page) => ["python3", "-c", PYTHON, page],
  node: (page) => ["node", "-e", NODE, page],
  java: (page) => ["java", "Get.java", page],
};
/** Those that bring their own authorities along, and ask the system for none. */
const NEED_VARIABLES = ["node"];

/** Runs a program with the proxy's variables and no others of ours. */
async function runBare(argv: readonly string[]): Promise<ExecResult> {
  const java = egressEnv(3128, undefined)["JAVA_TOOL_OPTIONS"];
  const kept = ["https_proxy=http://127.0.0.1:3128", `JAVA_TOOL_OPTIONS=${java}`];
  const script = 'exec env -i PATH="$PATH" HOME="$HOME" "$@"';
  return await sandbox.exec({ argv: ["sh", "-c", script, "sh", ...kept, ...argv] });
}

describe.each(Object.keys(CLIENTS))("%s", (client) => {
  const argv = (): string[] => CLIENTS[client]?.(url()) ?? [];

  beforeAll(async () => {
    if (client === "java") await sandbox.writeFile("Get.java", JAVA);
  });

  test("trusts the authority", async ({ skip }) => {
    if (!isHere(client)) skip(`this machine has no ${client}`);
    expect(await sandbox.exec({ argv: argv() })).toMatchObject({ stdout: GREETING, exitCode: 0 });
  });

  test("trusts it by what the system has, too", async ({ skip }) => {
    if (!isHere(client)) skip(`this machine has no ${client}`);
    const result = await runBare(argv());
    if (NEED_VARIABLES.includes(client)) expect(result.exitCode).not.toBe(0);
    else expect(result).toMatchObject({ stdout: GREETING, exitCode: 0 });
  });
});

describe("a sandbox with an authority", () => {
  test("has the variables of the proxy and of trust, and Java gets both", async () => {
    const { stdout } = await sandbox.exec({ argv: ["env"] });
    const folder = "/glovebox/trust";
    expect(stdout).toContain(`\nSSL_CERT_FILE=${folder}/bundle.pem\n`);
    expect(stdout).toContain(`\nNODE_EXTRA_CA_CERTS=${folder}/authority.pem\n`);
    const java = /^JAVA_TOOL_OPTIONS=(.*)$/m.exec(stdout)?.[1];
    expect(java).toContain("-Dhttps.proxyHost=127.0.0.1");
    expect(java).toContain(`-Djavax.net.ssl.trustStore=${folder}/authorities.jks`);
  });

  test("trusts what the system trusts, as well", async ({ skip }) => {
    const system = "/etc/ssl/certs/ca-certificates.crt";
    if (!existsSync(system)) skip(`this machine has no ${system}`);
    const shown = await sandbox.exec({ argv: ["cat", system], maxOutput: 4 << 20 });
    expect(blocks(shown.stdout)).toEqual([
      ...blocks(readFileSync(system, "utf8")),
      ...blocks(server.made[0]?.authority.certificate ?? ""),
    ]);
  });

  test("can change nothing of it", async () => {
    const script = "for path; do echo x >> $path || rm $path || ln -sf /dev/null $path; done";
    const paths = ["/glovebox/trust/bundle.pem", "/etc/ssl/certs/ca-certificates.crt"];
    await sandbox.exec({ argv: ["sh", "-c", script, "sh", ...paths] });
    expect(await sandbox.exec({ argv: ["curl", "-sS", url()] })).toMatchObject({ stdout: GREETING });
    expect((await sandbox.exec({ argv: ["touch", "/glovebox/trust/new"] })).stderr).toMatch(/Read-only file system/);
  });

  test("trusts no other authority of ours", async () => {
    await using other = await createLocalSandbox({ network: { allow: [`${NAME}:${server.port}`] } });
    // The server now shows a certificate of the newer one.
    expect(await other.exec({ argv: ["curl", "-sS", url()] })).toMatchObject({ stdout: GREETING });
    expect((await sandbox.exec({ argv: ["curl", "-sS", url()] })).stderr).toMatch(/certificate/);
  });
});

function blocks(text: string): string[] {
  return text.match(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g) ?? [];
}

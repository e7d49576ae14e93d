import { randomBytes } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { SecretRule } from "../../../contracts/types.js";
import type { SandboxOptions } from "../../sandbox/types.js";
import { check, equal, includes, refuses } from "../assert.js";
import { script } from "../script.js";
import { findSocketTool } from "../sockets.js";
import type { ConformanceCase, ConformanceContext } from "../types.js";

const NAME = "GLOVEBOX_KIT_KEY";
const HOST = "allowed.invalid";

/** A web server on the loopback of the process that runs the kit, and what it was asked. */
async function serveOnHost({ defer }: ConformanceContext): Promise<{ port: number; asked: string[] }> {
  const asked: string[] = [];
  const server = createServer(({ method, url }, response) => {
    asked.push(`${method} ${url}`);
    response.end("hello from the host");
  });
  await new Promise<void>((resolve, reject) => {
    server.on("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  defer(async () => server.close());
  return { port: (server.address() as AddressInfo).port, asked };
}

const withSecret = (from: NonNullable<SecretRule["from"]>): SandboxOptions => ({
  network: { allow: [HOST] },
  secrets: { [NAME]: { hosts: [HOST], from } },
});
const printing = (value: string): SandboxOptions => withSecret({ command: ["printf", "%s", value] });
const newValue = (): string => `kit-${randomBytes(12).toString("hex")}`;
const valueInside = `printf %s "\${${NAME}-none}"`;

const keepsSecrets: NonNullable<ConformanceCase["needs"]> = ({ secrets }) =>
  secrets === true ? undefined : "capabilities.secrets is not true";
const refusesSecrets: NonNullable<ConformanceCase["refused"]> = async ({ open }) => {
  const error = await refuses("unsupported", "open with a secret", () => open(printing(newValue())));
  check(
    /network|GLOVEBOX_KIT_KEY/.test(error.message),
    `the message names neither option nor secret: ${error.message}`,
  );
};

export const egressCases: readonly ConformanceCase[] = [
  {
    id: "network.rules",
    title: "rules by method and path",
    requirement: "With `methods` and `paths` of a rule, no other request reaches the host; the answer is 403.",
    needs: ({ networkRules }) => (networkRules === true ? undefined : "capabilities.networkRules is not true"),
    async refused({ open }) {
      const network = { allow: [{ host: HOST, methods: ["GET"] }] };
      const error = await refuses("unsupported", "open with a rule for methods", () => open({ network }));
      includes(error.message, "network", "the message names the option");
    },
    async run(context) {
      const { port, asked } = await serveOnHost(context);
      const rule = { host: "host-loopback", port, methods: ["GET"], paths: ["/v1/**"] };
      const sandbox = await context.open({ network: { allow: [rule] } });
      const tool = (await findSocketTool(sandbox)) ?? context.skip("no program in the sandbox can open a socket");
      const place = `host-loopback:${port}`;
      const proxy = await script(sandbox, 'printf %s "$HTTP_PROXY"');
      const { hostname, port: entrance } = new URL(proxy === "" ? `http://${place}` : proxy);
      const start = proxy === "" ? "" : `http://${place}`;
      const ask = async (method: string, path: string): Promise<string | undefined> => {
        const lines = [
          `${method} ${start}${path} HTTP/1.1`,
          `Host: ${place}`,
          "Content-Length: 0",
          "Connection: close",
        ];
        const answer = await tool.ask(hostname, Number(entrance), `${lines.join("\r\n")}\r\n\r\n`);
        return /^HTTP\/1\.1 (\d+)/.exec(answer ?? "")?.[1];
      };
      equal(await ask("GET", "/v1/a"), "200", "the status of what the rule allows");
      const refused: [string, string][] = [
        ["POST", "/v1/a"],
        ["GET", "/v2/a"],
        ["GET", "/v1/../v2/a"],
      ];
      const statuses: (string | undefined)[] = [];
      for (const [method, path] of refused) statuses.push(await ask(method, path));
      equal(asked, ["GET /v1/a"], "what reached the host");
      equal(statuses, ["403", "403", "403"], "the statuses of the others");
    },
  },
  {
    id: "secrets.outside",
    title: "a value that is not inside",
    requirement:
      "With `secrets`, commands get a placeholder, and no process of the sandbox has the value in its environment.",
    needs: keepsSecrets,
    refused: refusesSecrets,
    async run({ open }) {
      const value = newValue();
      const sandbox = await open(printing(value));
      const seen = await script(sandbox, `env; cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n'; true`);
      check(!seen.includes(value), "the value is in the environment of a process");
      const placeholder = await script(sandbox, valueInside);
      check(placeholder !== "none" && placeholder.length >= 16, `${NAME} is ${JSON.stringify(placeholder)}`);
    },
  },
  {
    id: "secrets.missing",
    title: "a value that can't be had",
    requirement: "A secret without a value is `unauthenticated`, and its name is in the message.",
    needs: keepsSecrets,
    async run({ open }) {
      for (const from of [{ env: `${NAME}_NOT_SET` }, { command: ["false"] }]) {
        const what = `open with a secret from ${JSON.stringify(from)}`;
        const error = await refuses("unauthenticated", what, () => open(withSecret(from)));
        includes(error.message, NAME, "the message names the secret");
      }
    },
  },
  {
    id: "secrets.change",
    title: "changed secrets",
    requirement:
      "`setSecrets` gives commands of an open sandbox other secrets; one for a host that `network.allow` does not have is refused.",
    needs: keepsSecrets,
    async refused({ sandbox }) {
      const { secrets = {} } = printing(newValue());
      await refuses("unsupported", "setSecrets", () => sandbox.setSecrets(secrets));
    },
    async run({ open }) {
      const sandbox = await open({ network: { allow: [HOST] } });
      const value = newValue();
      const { secrets = {} } = printing(value);
      const other = { [NAME]: { hosts: ["other.invalid"], from: { command: ["printf", "%s", value] } } };
      await refuses("invalid_argument", "a secret for another host", () => sandbox.setSecrets(other));
      equal(await script(sandbox, valueInside), "none", "the variable after a refused change");
      await sandbox.setSecrets(secrets);
      const placeholder = await script(sandbox, valueInside);
      check(placeholder !== "none" && placeholder !== value, "commands have no placeholder");
      await sandbox.setSecrets({});
      equal(await script(sandbox, valueInside), "none", "the variable of a removed secret");
    },
  },
];

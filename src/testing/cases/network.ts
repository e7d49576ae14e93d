import { createServer, type Server } from "node:net";
import { networkInterfaces } from "node:os";
import { check, equal, includes, refuses } from "../assert.js";
import { script } from "../script.js";
import { findSocketTool } from "../sockets.js";
import type { ConformanceCase, ConformanceContext } from "../types.js";

interface Listener {
  readonly port: number;
  readonly addresses: readonly string[];
  connections(): number;
}

/** Listens on every address of the host and counts the connections. */
async function listenOnHost({ defer }: ConformanceContext): Promise<Listener> {
  let count = 0;
  const server: Server = createServer((socket) => {
    count++;
    socket.on("error", () => undefined);
    socket.end("hello from the host");
  });
  await new Promise<void>((resolve, reject) => {
    server.on("error", reject);
    server.listen(0, "0.0.0.0", resolve);
  });
  defer(async () => server.close());
  const address = server.address();
  check(address !== null && typeof address === "object", "the listener has no port");
  const others = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  const own = others.filter(({ family, internal }) => family === "IPv4" && !internal).map((each) => each.address);
  return { port: address.port, addresses: ["127.0.0.1", ...own], connections: () => count };
}

/** Checks that the sandbox's loopback works and that it cannot reach the host. */
async function isCutOff(context: ConformanceContext): Promise<void> {
  const { sandbox, skip } = context;
  const tool = (await findSocketTool(sandbox)) ?? skip("no program in the sandbox can open a socket");
  const server = await tool.serve("hello from inside");
  equal(await tool.connect("127.0.0.1", server.port), "hello from inside", "over the sandbox's own loopback");
  const host = await listenOnHost(context);
  for (const address of host.addresses) {
    equal(await tool.connect(address, host.port), undefined, `what the host's listener on ${address} said`);
  }
  equal(host.connections(), 0, "connections that reached the host");
  await server.process.kill("SIGKILL");
  await server.process.wait();
}

const enforces =
  (kind: "none" | "full" | "allow"): NonNullable<ConformanceCase["needs"]> =>
  ({ network }) =>
    network.includes(kind) ? undefined : `capabilities.network does not have ${kind}`;

const refusesNetwork =
  (network: "none" | "full" | { allow: string[] }): NonNullable<ConformanceCase["refused"]> =>
  async ({ open }) => {
    const error = await refuses("unsupported", `open with network ${JSON.stringify(network)}`, () => open({ network }));
    includes(error.message, "network", "the message names the option");
  };

export const networkCases: readonly ConformanceCase[] = [
  {
    id: "network.none",
    title: "no network",
    requirement: 'With `network: "none"` there is loopback, and no address of the host can be reached.',
    options: { network: "none" },
    needs: enforces("none"),
    refused: refusesNetwork("none"),
    run: isCutOff,
  },
  {
    id: "network.default",
    title: "no network by default",
    requirement: 'The default of `network` is "none" if the backend can enforce it.',
    needs: enforces("none"),
    run: isCutOff,
  },
  {
    id: "network.none-interfaces",
    title: "no interface but loopback",
    requirement: 'With `network: "none"` the sandbox has no network interface except loopback.',
    options: { network: "none" },
    needs: enforces("none"),
    async run({ sandbox, skip }) {
      const text = "cat /proc/net/dev 2>/dev/null || echo none";
      const seen = await script(sandbox, text);
      if (seen === "none\n") skip("the sandbox has no /proc/net/dev");
      const names = [...seen.matchAll(/^\s*([^\s:]+):/gm)].map(([, name]) => name);
      equal(names, ["lo"], "interfaces");
    },
  },
  {
    id: "network.full",
    title: "the host's network",
    requirement: 'With `network: "full"` a command can reach what the host can reach.',
    options: { network: "full" },
    needs: enforces("full"),
    refused: refusesNetwork("full"),
    async run(context) {
      const { sandbox, harness, skip } = context;
      const tool = (await findSocketTool(sandbox)) ?? skip("no program in the sandbox can open a socket");
      const server = await tool.serve("hello from inside");
      equal(await tool.connect("127.0.0.1", server.port), "hello from inside", "over loopback");
      if (harness.host?.sharesNetwork !== true) return;
      const host = await listenOnHost(context);
      equal(await tool.connect("127.0.0.1", host.port), "hello from the host", "what the host's listener said");
      equal(host.connections(), 1, "connections that reached the host");
    },
  },
  {
    id: "network.allow",
    title: "only allowed hosts",
    requirement: "With `network: { allow }` a command cannot reach an address that is not on the list.",
    options: { network: { allow: ["allowed.invalid"] } },
    needs: enforces("allow"),
    refused: refusesNetwork({ allow: ["allowed.invalid"] }),
    run: isCutOff,
  },
  {
    id: "network.allow-nothing",
    title: "an empty allow list",
    requirement: "With `network: { allow: [] }` a command cannot reach anything.",
    options: { network: { allow: [] } },
    needs: enforces("allow"),
    refused: refusesNetwork({ allow: [] }),
    run: isCutOff,
  },
  {
    id: "network.change",
    title: "changed rules",
    requirement:
      "`setNetwork` replaces the rules of an open sandbox and records them; `full`, and what the option `network` refuses, are refused.",
    options: { network: { allow: ["allowed.invalid"] }, keep: true },
    closes: true,
    needs: ({ liveNetwork }) => (liveNetwork === true ? undefined : "capabilities.liveNetwork is not true"),
    async refused({ sandbox }) {
      await refuses("unsupported", "setNetwork", () => sandbox.setNetwork("none"));
    },
    async run(context) {
      const { sandbox, open } = context;
      const { id } = sandbox;
      await refuses("unsupported", 'setNetwork("full")', () => sandbox.setNetwork("full" as "none"));
      const odd = await refuses("invalid_argument", "an odd entry", () => sandbox.setNetwork({ allow: ["*"] }));
      includes(odd.message, "network.allow[0]", "the message names the entry");
      await sandbox.setNetwork({ allow: ["other.invalid"] });
      await isCutOff(context);
      await sandbox.teardown();
      const old = { id, network: { allow: ["allowed.invalid"] } };
      await refuses("invalid_argument", "reopening it with the old rules", () => open(old));
      const again = await open({ id, network: { allow: ["other.invalid"] }, keep: false });
      await again.setNetwork("none");
      await isCutOff({ ...context, sandbox: again });
    },
  },
  {
    id: "network.allow-odd",
    title: "invalid entries",
    requirement:
      "An entry of `network.allow` that would match everything, or nothing, is `invalid_argument` and is named.",
    async run({ open }) {
      for (const entry of ["*", "*.com", "https://allowed.invalid", "allowed.invalid/path", "127.0.0.1", "a b", ""]) {
        const network = { allow: ["allowed.invalid", entry] };
        const error = await refuses("invalid_argument", `open with ${JSON.stringify(entry)}`, () => open({ network }));
        includes(error.message, "network.allow[1]", "the message names the entry");
      }
    },
  },
];

import { createSocket, type Socket as Datagrams } from "node:dgram";
import { once } from "node:events";
import { type AddressInfo, createConnection, createServer, type Server } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createLocalSandbox } from "../../../../src/sandbox/backends/local.js";
import { compileProbe, createManagers, MANAGERS, type Manager, type Managers } from "../../../support/local/manager.js";

let managers: Managers;
let probe: string;
let reached = 0;
let servers: Server[];
let datagrams: Datagrams;
let datagrams6: Datagrams;
beforeAll(async () => {
  managers = createManagers();
  probe = compileProbe("reach", managers.directory);
  const count = (): void => {
    reached += 1;
  };
  servers = [createServer(count).listen(0, "127.0.0.1"), createServer(count).listen(0, "::1")];
  datagrams = createSocket("udp4", count).bind(0, "127.0.0.1");
  datagrams6 = createSocket("udp6", count).bind(0, "::1");
  await Promise.all([...servers, datagrams, datagrams6].map((server) => once(server, "listening")));
});
afterAll(() => {
  for (const server of [...servers, datagrams, datagrams6]) server.close();
  managers.remove();
});

const portOf = (server: Server | undefined): number => (server?.address() as AddressInfo | undefined)?.port ?? 0;

describe.each(MANAGERS)("opened by %s", (name) => {
  let manager: Manager;
  beforeAll(() => {
    manager = managers.all.find((each) => each.name === name) as Manager;
  });

  test.each([
    ["without the network", "none"],
    ["with a list of names", { allow: ["example.com"] }],
  ] as const)(
    "[N-NET-01] [N-NET-02] [N-NET-03] %s nothing of the host is reached, by no address and no kind of socket",
    async (_what, network) => {
      reached = 0;
      const [port, port6, udp] = [portOf(servers[0]), portOf(servers[1]), datagrams.address().port];
      const own = [
        `tcp4:127.0.0.1,${port}`,
        `tcp6:::1,${port6}`,
        `tcp6:::ffff:127.0.0.1,${port}`,
        `tcp4:0.0.0.0,${port}`,
      ];
      const far = ["tcp4:169.254.169.254,80", "tcp6:fd00:ec2::254,80", "tcp4:172.17.0.1,80", "tcp4:192.0.2.1,443"];
      const resolvers = ["udp4:8.8.8.8,53", "udp4:192.0.2.1,53", "udp6:2001:4860:4860::8888,53", "tcp4:8.8.8.8,53"];
      const encrypted = ["tcp4:1.1.1.1,853", "tcp4:1.1.1.1,443", "udp4:1.1.1.1,443", "tcp6:2606:4700:4700::1111,443"];
      const pings = ["ping4:192.0.2.1,0", "ping6:2001:4860:4860::8888,0"];
      const words = ["udp4:127.0.0.53,53", `udp4:127.0.0.1,${udp}`, `udp6:::1,${datagrams6.address().port}`];
      const { results } = await manager.run({
        options: { network: network === "none" ? network : { allow: [...network.allow] } },
        programs: { probe, calls: compileProbe("refused-calls", managers.directory) },
        scripts: [
          `./probe ${[...own, ...far, ...resolvers, ...encrypted, ...pings, ...words].join(" ")}`,
          "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '; cat /proc/net/route | tail -n +2",
          "getent hosts secret.example.com; cat /etc/resolv.conf",
          "./calls | grep socket",
          `bash -c 'for to in tcp/127.0.0.1/${port} tcp/192.0.2.1/443 udp/192.0.2.1/53; do (: > /dev/$to) 2>/dev/null && echo "$to"; done; echo over'`,
        ],
      });
      const lines = results[0]?.stdout.trim().split("\n") ?? [];
      const answers = new Map(lines.map((line) => line.split(" ") as [string, string]));
      for (const address of own) expect([address, answers.get(address)]).toEqual([address, "ECONNREFUSED"]);
      for (const address of [...far, ...resolvers, ...encrypted])
        expect([address, answers.get(address)]).toEqual([address, "ENETUNREACH"]);
      // Whether a user may make such sockets at all is up to the system.
      for (const address of pings)
        expect([address, answers.get(address)]).toEqual([
          address,
          expect.stringMatching(/^(ENETUNREACH|EACCES|EPERM)$/),
        ]);
      expect(results[1]?.stdout).toBe("lo\n");
      expect(results[2]?.stdout).toBe("nameserver 127.77.0.1\n"); // of the sandbox itself, if it has one
      expect(results[3]?.stdout.match(/socket \w+ (EPERM|EAFNOSUPPORT)\n/g)).toHaveLength(6);
      expect(results[4]?.stdout).toBe("over\n");
      expect(reached).toBe(0);
    },
  );

  test("with the full network the host's loopback is there, raw and foreign sockets are not", async () => {
    reached = 0;
    const { results } = await manager.run({
      options: { network: "full" },
      programs: { probe, calls: compileProbe("refused-calls", managers.directory) },
      scripts: [`./probe tcp4:127.0.0.1,${portOf(servers[0])} tcp6:::1,${portOf(servers[1])}`, "./calls | grep socket"],
    });
    expect(results[0]?.stdout.match(/ reached/g)).toHaveLength(2);
    expect(reached).toBe(2);
    expect(results[1]?.stdout.match(/socket \w+ (EPERM|EAFNOSUPPORT)\n/g)).toHaveLength(6);
  });
});

test("[N-NET-08] a server inside is reached by a later command and not by the host, nor by another sandbox", async () => {
  const port = portOf(servers[0]) === 18_423 ? 18_424 : 18_423;
  const serve = `require("net").createServer((c) => c.end("hello")).listen(${port}, "0.0.0.0", () => console.log("up"))`;
  const ask = `require("net").connect(${port}, "127.0.0.1").on("data", (d) => console.log(String(d))).on("error", (e) => console.log(e.code))`;
  await using sandbox = await createLocalSandbox();
  await using other = await createLocalSandbox();
  const server = await sandbox.spawn({ argv: ["node", "-e", serve] });
  const { value } = await server.stdout.getReader().read();
  expect(Buffer.from(value ?? []).toString()).toBe("up\n");
  expect((await sandbox.exec({ argv: ["node", "-e", ask] })).stdout).toBe("hello\n");
  expect((await other.exec({ argv: ["node", "-e", ask] })).stdout).toBe("ECONNREFUSED\n");
  const fromHost = createConnection(port, "127.0.0.1");
  const [error] = await once(fromHost, "error");
  expect(error).toMatchObject({ code: "ECONNREFUSED" });
});

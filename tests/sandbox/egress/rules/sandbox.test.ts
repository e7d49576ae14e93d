import { createServer } from "node:http";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { NetworkRules } from "../../../../contracts/types.js";
import { egressInternals } from "../../../../src/sandbox/egress/open-egress.js";
import { createLocalSandbox } from "../../../../src/sandbox/local.js";
import type { Sandbox } from "../../../../src/sandbox/types.js";
import { createCertificate } from "../../../support/egress/certificate.js";
import { type GitServer, startGitServer } from "../../../support/egress/git-server.js";
import { listen } from "../../../support/egress/running-proxy.js";
import { createScratch, type Scratch } from "../../../support/scratch.js";

const NAME = "git.example.com";

let scratch: Scratch;
let server: GitServer;

beforeAll(async () => {
  scratch = createScratch();
  const certificate = createCertificate(scratch.path, [NAME]);
  server = await startGitServer(scratch.path, certificate);
  egressInternals.ca = [certificate.cert.toString()];
  egressInternals.route = { lookup: async () => ["127.0.0.1"], isReachable: (address) => address === "127.0.0.1" };
});

afterAll(() => {
  server.close();
  delete egressInternals.ca;
  delete egressInternals.route;
  scratch.remove();
});

const url = (path: string): string => `https://${NAME}:${server.port}${path}`;

async function curl(sandbox: Sandbox, path: string, ...args: string[]): Promise<string> {
  const argv = ["curl", "-sS", "--path-as-is", "-w", "%{http_code}", ...args, url(path)];
  const { stdout, stderr } = await sandbox.exec({ argv });
  return stdout + stderr;
}

describe("a sandbox with rules for requests", () => {
  let sandbox: Sandbox;
  let rules: NetworkRules;

  beforeAll(async () => {
    rules = {
      allow: [
        { host: NAME, port: server.port, methods: ["GET"], paths: ["/v1/**"] },
        { host: NAME, port: server.port, git: "fetch", paths: ["/org/*"] },
      ],
      deny: [{ host: NAME, paths: ["/v1/admin/**"] }],
    };
    sandbox = await createLocalSandbox({ network: rules });
  });
  afterAll(async () => await sandbox.teardown());

  test("lets through what they allow", async () => {
    expect(await curl(sandbox, "/v1/models?x=1")).toBe("GET /v1/models?x=1\n200");
    expect(await curl(sandbox, "/v1/models", "-I")).toMatch(/^HTTP\/1\.1 200/);
  });

  test.each<[string, string, string[], string]>([
    ["another method", "/v1/models", ["-X", "POST", "-d", "x"], "do not allow POST /v1/models"],
    ["another path", "/v2/models", [], "do not allow GET /v2/models"],
    ["a path that climbs", "/v1/../v2/models", [], "in different ways"],
    ["an encoded path that climbs", "/v1/%2e%2e/v2/models", [], "in different ways"],
    ["a denied path", "/v1/Admin/users", [], "network.deny[0]"],
    [
      "a header that changes the method",
      "/v1/models",
      ["-H", "X-HTTP-Method-Override: DELETE"],
      "X-HTTP-Method-Override",
    ],
  ])("refuses %s with a 403, and the server hears nothing of it", async (_what, path, args, message) => {
    const before = server.requests.length;
    const answer = await curl(sandbox, path, ...args);
    expect(answer).toContain(message);
    expect(answer).toMatch(/403$/);
    expect(server.requests.slice(before)).toEqual([]);
  });

  test("says what to type", async () => {
    expect(await curl(sandbox, "/v1/models", "-X", "PUT")).toContain(
      `to allow it: --network 'allow=PUT ${NAME}:${server.port}/v1/models'`,
    );
  });

  test("lets git fetch, and not push", async () => {
    const script = `
      git clone -q ${url("/org/repo.git")} repo && cd repo &&
      git -c user.name=t -c user.email=t@example.com commit -q --allow-empty -m second &&
      git push -q origin main`;
    const result = await sandbox.exec({ argv: ["sh", "-c", script], cwd: "." });
    expect(result.stderr).toContain("The requested URL returned error: 403");
    expect(result.exitCode).not.toBe(0);
    expect((await sandbox.exec({ argv: ["git", "-C", "repo", "log", "--format=%s"] })).stdout).toBe("second\nfirst\n");
    expect(server.commits()).toEqual(["first"]);
    expect(server.requests.filter((each) => each.includes("receive-pack"))).toEqual([]);
  });

  test("has the same rules as a fork", async () => {
    await using fork = await sandbox.fork();
    expect(await curl(fork, "/v1/models")).toMatch(/200$/);
    expect(await curl(fork, "/v2/models")).toMatch(/403$/);
  });
});

test("a kept sandbox has the same rules when it is reopened, and another network is refused", async () => {
  const network: NetworkRules = { allow: [{ host: NAME, port: server.port, methods: ["GET"] }] };
  const made = await createLocalSandbox({ network, keep: true });
  const { id } = made;
  await made.teardown();
  await expect(createLocalSandbox({ id, network: { allow: [`${NAME}:${server.port}`] } })).rejects.toMatchObject({
    code: "invalid_argument",
  });
  await using again = await createLocalSandbox({ id, network, keep: false });
  expect(await curl(again, "/x")).toMatch(/200$/);
  expect(await curl(again, "/x", "-X", "DELETE")).toMatch(/403$/);
});

test("pushing works where it is allowed", async () => {
  await using sandbox = await createLocalSandbox({
    network: { allow: [{ host: NAME, port: server.port, git: "push" }] },
  });
  const script = `
    git clone -q ${url("/org/repo.git")} repo && cd repo && git checkout -q -b other &&
    git -c user.name=t -c user.email=t@example.com commit -q --allow-empty -m second &&
    git push -q origin other`;
  expect(await sandbox.exec({ argv: ["sh", "-c", script] })).toMatchObject({ exitCode: 0, stderr: "" });
  expect(server.requests).toContain("POST /org/repo.git/git-receive-pack");
  expect(await curl(sandbox, "/v1/models")).toMatch(/403$/);
});

describe("a port of the host's loopback", () => {
  test("is reached by its name, with a proxy and without, and no other port is", async () => {
    const there = createServer((_request, response) => response.end("hello from the host\n"));
    const other = createServer((_request, response) => response.end("not for you\n"));
    const [port, otherPort] = [await listen(there), await listen(other)];
    try {
      await using sandbox = await createLocalSandbox({ network: { allow: [`host-loopback:${port}`] } });
      const get = async (...args: string[]): Promise<string> => {
        const { stdout, stderr } = await sandbox.exec({ argv: ["curl", "-sS", "-m", "20", ...args] });
        return stdout + stderr;
      };
      expect(await get(`http://host-loopback:${port}/`)).toBe("hello from the host\n");
      expect(await get("--noproxy", "*", `http://host-loopback:${port}/`)).toBe("hello from the host\n");
      expect(await get("-p", `http://host-loopback:${port}/`)).toBe("hello from the host\n");
      expect(await get(`http://host-loopback:${otherPort}/`)).toMatch(/does not allow host-loopback/);
      for (const name of ["127.0.0.1", "localhost", "[::1]"]) {
        expect(await get("--noproxy", "", "-x", "http://127.0.0.1:3128", `http://${name}:${port}/`)).not.toContain(
          "hello",
        );
      }
    } finally {
      there.close();
      other.close();
    }
  });
});

test("what contradicts itself, or a backend can't enforce, is refused before anything is made", async () => {
  await expect(
    createLocalSandbox({ network: { allow: [NAME, { host: NAME, methods: ["GET"] }] } }),
  ).rejects.toMatchObject({
    code: "invalid_argument",
    message: expect.stringContaining("allows every request there"),
  });
  await expect(
    createLocalSandbox({ isolation: "none", network: { allow: [{ host: NAME, methods: ["GET"] }] } }),
  ).rejects.toMatchObject({ code: "unsupported" });
});

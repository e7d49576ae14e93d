import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { BlockedAnswer, BlockedRequest, NetworkRules } from "../../../contracts/types.js";
import { createLocalSandbox } from "../../../src/sandbox/backends/local.js";
import { egressInternals } from "../../../src/sandbox/egress/open-egress.js";
import { Questions } from "../../../src/sandbox/egress/traffic/questions.js";
import type { Sandbox } from "../../../src/sandbox/types.js";
import { openSandbox } from "../../../src/sandbox.js";
import { type Origin, startOrigin } from "../../support/egress/origin.js";

const NAME = "asked.test";
let origin: Origin;

beforeAll(async () => {
  origin = await startOrigin();
  egressInternals.route = { lookup: async () => ["127.0.0.1"], isReachable: (address) => address === "127.0.0.1" };
});

afterAll(() => {
  delete egressInternals.route;
  origin.close();
});

interface Asked {
  readonly sandbox: Sandbox;
  readonly questions: BlockedRequest[];
}

async function openAsked(
  answer: (request: BlockedRequest) => BlockedAnswer | Promise<BlockedAnswer>,
  more: { keep?: boolean; network?: NetworkRules } = {},
): Promise<Asked> {
  const questions: BlockedRequest[] = [];
  const onBlocked = (request: BlockedRequest): BlockedAnswer | Promise<BlockedAnswer> => {
    questions.push(request);
    return answer(request);
  };
  return { sandbox: await createLocalSandbox({ network: { allow: [] }, onBlocked, ...more }), questions };
}

const statusOf = async (sandbox: Sandbox, url: string): Promise<string> =>
  (await sandbox.exec({ argv: ["curl", "-s", "-m", "20", "-o", "/dev/null", "-w", "%{http_code}", url] })).stdout;
const where = (path = "/"): string => `http://${NAME}:${origin.port}${path}`;

describe("onBlocked", () => {
  test("allow-once lets one connection pass, and is asked about the next", async () => {
    const { sandbox, questions } = await openAsked(() => "allow-once");
    await using _ = sandbox;
    expect(await statusOf(sandbox, where("/some/path?key=secret"))).toBe("200");
    expect(await statusOf(sandbox, where())).toBe("200");
    const about = { host: NAME, port: origin.port, reason: "not_allowed", method: "GET" };
    expect(questions).toEqual([
      { ...about, path: "/some/path" },
      { ...about, path: "/" },
    ]);
  });

  test("allow adds the host to the rules of the open sandbox, of its forks and of its record", async () => {
    const { sandbox, questions } = await openAsked(() => "allow", { keep: true });
    expect(await statusOf(sandbox, where())).toBe("200");
    expect(await statusOf(sandbox, where())).toBe("200");
    expect(questions).toHaveLength(1);
    const fork = await sandbox.fork();
    expect(await statusOf(fork, where())).toBe("200");
    await sandbox.teardown();
    const again = await openSandbox({ id: sandbox.id, keep: false });
    expect(await statusOf(again, where())).toBe("200");
    expect(await statusOf(again, `http://other.test:${origin.port}/`)).toBe("403");
    await again.teardown();
    await using forkAgain = await openSandbox({ id: fork.id, network: { allow: [`${NAME}:${origin.port}`] } });
    expect(await statusOf(forkAgain, where())).toBe("200");
    await fork.teardown();
    expect(questions).toHaveLength(1);
  });

  test("allow adds the request that the rules of a host exclude, and no other", async () => {
    const rule = { host: NAME, port: origin.port, methods: ["GET"], paths: ["/v1/*"] };
    const { sandbox, questions } = await openAsked(() => "allow", { network: { allow: [rule] }, keep: true });
    const post = async (path: string, of = sandbox): Promise<string> => {
      const argv = ["curl", "-s", "-m", "20", "-o", "/dev/null", "-w", "%{http_code}", "-d", "x", where(path)];
      return (await of.exec({ argv })).stdout;
    };
    expect([await post("/v1/a?key=1"), await post("/v1/a")]).toEqual(["200", "200"]);
    const about = { host: NAME, port: origin.port, reason: "request_not_allowed", method: "POST" };
    expect(questions).toEqual([{ ...about, path: "/v1/a" }]);
    expect(await post("/v1/b")).toBe("200");
    expect(questions.length).toBe(2);
    // No rule stands for this path alone.
    expect([await post("/v1/*"), await post("/v1/*")]).toEqual(["200", "200"]);
    expect(questions.length).toBe(4);
    // What is not clear is no question.
    expect(await post("/v1/%2e%2e")).toBe("403");
    expect(questions.length).toBe(4);
    await sandbox.teardown();
    const added = ["/v1/a", "/v1/b"].map((path) => ({
      host: NAME,
      port: origin.port,
      methods: ["POST"],
      paths: [path],
    }));
    await using again = await openSandbox({ id: sandbox.id, network: { allow: [rule, ...added] }, keep: false });
    expect([await post("/v1/a", again), await post("/v1/c", again)]).toEqual(["200", "403"]);
  });

  test("requests that wait for the same answer pass by the rule that it added", async () => {
    let answer: (answer: BlockedAnswer) => void = () => undefined;
    const rule = { host: NAME, port: origin.port, methods: ["POST"] };
    const { sandbox, questions } = await openAsked(
      () =>
        new Promise((resolve) => {
          answer = resolve;
        }),
      { network: { allow: [rule] } },
    );
    await using _ = sandbox;
    const all = [statusOf(sandbox, where("/a")), statusOf(sandbox, where("/a"))];
    await expect.poll(() => questions.length).toBe(1);
    answer("allow");
    expect(await Promise.all(all)).toEqual(["200", "200"]);
    expect(questions.length).toBe(1);
  });

  test.each<[string, () => BlockedAnswer | Promise<BlockedAnswer>]>([
    ["deny", () => "deny"],
    [
      "an error",
      () => {
        throw new Error("no");
      },
    ],
    ["a rejection", async () => Promise.reject(new Error("no"))],
    ["another word", () => "yes" as BlockedAnswer],
    ["nothing", () => undefined as unknown as BlockedAnswer],
  ])("%s is a refusal", async (_, answer) => {
    const { sandbox, questions } = await openAsked(answer);
    await using _sandbox = sandbox;
    const before = origin.requests.length;
    expect(await statusOf(sandbox, where())).toBe("403");
    expect(questions).toHaveLength(1);
    expect(origin.requests.length).toBe(before);
  });

  test("no answer in time is a refusal, and a late one changes nothing", async () => {
    egressInternals.limits = { question: 100 };
    let answerLate: (answer: BlockedAnswer) => void = () => undefined;
    const { sandbox, questions } = await openAsked(
      () =>
        new Promise((resolve) => {
          answerLate = resolve;
        }),
    );
    await using _ = sandbox;
    expect(await statusOf(sandbox, where())).toBe("403");
    answerLate("allow");
    expect(await statusOf(sandbox, where())).toBe("403");
    expect(questions).toHaveLength(2);
    delete egressInternals.limits;
  });

  test("asks one question per host and port at a time; a refusal is for all that wait", async () => {
    const asked: string[] = [];
    let answer: (answer: BlockedAnswer) => void = () => undefined;
    const questions = new Questions({
      ask({ host }) {
        asked.push(host);
        if (host !== NAME) return "deny";
        return new Promise((resolve) => {
          answer = resolve;
        });
      },
      canAllow: async () => true,
      allow: async () => undefined,
      timeout: 60_000,
    });
    const put = (host: string): Promise<BlockedAnswer> =>
      questions.put({
        request: { host, port: 443, reason: "not_allowed" },
        entry: host,
        most: host,
        isAllowed: () => false,
      });
    const all = [put(NAME), put(NAME), put(NAME)];
    await expect.poll(() => asked).toEqual([NAME]);
    // Other hosts don't wait for this one.
    expect(await put("other.test")).toBe("deny");
    answer("deny");
    expect(await Promise.all(all)).toEqual(["deny", "deny", "deny"]);
    expect(asked).toEqual([NAME, "other.test"]);
  });

  test("is never asked about what can't be allowed", async () => {
    const { sandbox, questions } = await openAsked(() => "allow");
    await using _ = sandbox;
    for (const host of ["127.0.0.2", "10.0.0.1", "169.254.169.254", "[::1]", "intranet", "1.1.1.1.."]) {
      const answer = await statusOf(sandbox, `http://${host}:${origin.port}/`);
      expect([host, answer]).toEqual([host, expect.stringMatching(/^(403|400|000)$/)]);
    }
    expect(questions).toEqual([]);
  });

  test("is asked about the name of a tunnel, whose requests nobody can read", async () => {
    const { sandbox, questions } = await openAsked(() => "deny");
    await using _ = sandbox;
    const result = await sandbox.exec({ argv: ["curl", "-sS", "-m", "20", `https://${NAME}/path`] });
    expect(result.stderr).toMatch(/403/);
    expect(questions).toEqual([{ host: NAME, port: 443, reason: "not_allowed" }]);
  });

  test("is unsupported where the connections don't pass through this process", async () => {
    const opening = createLocalSandbox({ isolation: "none", onBlocked: () => "deny" });
    await expect(opening).rejects.toMatchObject({ code: "unsupported", message: expect.stringContaining("onBlocked") });
  });
});

test("a refused program is told which rule it was, and what to type, in the status line, too", async () => {
  await using sandbox = await createLocalSandbox({ network: { allow: [] } });
  const { stdout } = await sandbox.exec({ argv: ["curl", "-si", `http://${NAME}:8080/`] });
  expect(stdout.split("\r\n")).toEqual(
    expect.arrayContaining([
      `HTTP/1.1 403 Forbidden by glovebox; to allow it: --network allow=${NAME}:8080`,
      'Proxy-Status: glovebox; error=http_request_denied; details="not_allowed"',
    ]),
  );
  expect(stdout.split("\r\n\r\n")[1]).toBe(
    [
      `glovebox: the rule network.allow of this sandbox does not allow ${NAME}:8080`,
      `to allow it: network: { allow: ["${NAME}:8080"] } in code, --network allow=${NAME}:8080 in a shell\n`,
    ].join("\n"),
  );
  const script = `import urllib.request as u\ntry: u.urlopen("https://${NAME}/")\nexcept Exception as e: print(e)`;
  const python = await sandbox.exec({ argv: ["python3", "-c", script] });
  expect(python.stdout).toContain(`--network allow=${NAME}`);
});

import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { afterEach, expect, test } from "vitest";
import type { SecretRule } from "../../../../contracts/types.js";
import { type OpenSecrets, openSecrets } from "../../../../src/sandbox/egress/secrets/open-secrets.js";

const VALUE = "the-real-value-0123456789";
const opened: OpenSecrets[] = [];

afterEach(() => {
  for (const secrets of opened.splice(0)) secrets.close();
  delete process.env["TEST_KEY"];
  delete process.env["TEST_MORE"];
});

async function open(rules: Record<string, SecretRule>, value = VALUE): Promise<OpenSecrets> {
  process.env["TEST_KEY"] = value;
  process.env["TEST_MORE"] = `${value}-more`;
  const secrets = await openSecrets(rules, { visible: [], network: () => "none" });
  opened.push(secrets);
  return secrets;
}

type Headers = [string, string][];
type Changes = NonNullable<ReturnType<OpenSecrets["broker"]["changesOf"]>>;

function changes({ broker }: OpenSecrets, host = "a.test", port = 443): Changes {
  const found = broker.changesOf(host, port, "POST");
  if (found === undefined) throw new Error(`no secret is for ${host}:${port}`);
  return found;
}

async function* cut(bytes: Buffer, lengths: readonly number[]): AsyncGenerator<Buffer> {
  let at = 0;
  for (const length of lengths) {
    yield bytes.subarray(at, at + length);
    at += length;
  }
  yield bytes.subarray(at);
}

async function collect(pieces: AsyncIterable<Buffer>): Promise<Buffer> {
  const all: Buffer[] = [];
  for await (const piece of pieces) {
    // It would end a body in chunks.
    expect(piece.length).toBeGreaterThan(0);
    all.push(piece);
  }
  return Buffer.concat(all);
}

test.each([
  ["a.test", 443, true],
  ["a.test", 8443, false],
  ["b.test", 8443, true],
  ["b.test", 443, false],
  ["x.a.test", 443, false],
  ["xa.test", 443, false],
  ["c.wild.test", 443, true],
  ["d.c.wild.test", 443, true],
  ["wild.test", 443, false],
  ["notwild.test", 443, false],
])("a secret goes to %s:%i: %s", async (host, port, isFor) => {
  const { broker } = await open({ TEST_KEY: { hosts: ["A.test", "b.test:8443", "*.wild.test"], force: true } });
  expect(broker.changesOf(host, port, "GET") !== undefined).toBe(isFor);
  expect(broker.hosts).toEqual(["a.test", "b.test", "*.wild.test"]);
});

test("a placeholder is new at each opening, and says nothing about the value", async () => {
  const rules = { TEST_KEY: { hosts: ["a.test"], prefix: "sk-ant-" } };
  const [one, two] = [await open(rules), await open(rules)];
  expect(one.env["TEST_KEY"]).toMatch(/^sk-ant-glovebox[A-Za-z0-9]{32}$/);
  expect(one.env["TEST_KEY"]).not.toBe(two.env["TEST_KEY"]);
});

test("two secrets in one header are both put in, each where it may be", async () => {
  const secrets = await open({
    TEST_KEY: { hosts: ["a.test"] },
    TEST_MORE: { hosts: ["a.test"], header: "x-more" },
  });
  const { TEST_KEY: key, TEST_MORE: more } = secrets.env;
  const both = `${key} ${more}`;
  const headers: Headers = [
    ["X-More", both],
    ["X-Other", both],
    ["Host", both],
  ];
  const changed = await changes(secrets).ofRequest({ path: `/?${key}`, headers });
  expect(changed.path).toBe(`/?${key}`);
  expect(changed.headers).toEqual([
    ["X-More", `${VALUE} ${VALUE}-more`],
    ["X-Other", `${VALUE} ${more}`],
    ["Host", both],
    ["Accept-Encoding", "identity"],
  ]);
});

test("credentials of the Basic scheme that have no placeholder stay as they are", async () => {
  const secrets = await open({ TEST_KEY: { hosts: ["a.test"] } });
  for (const value of ["Basic dXNlcjpwYXNz", "Basic !!!", "Basic", "basic dXNlcjpwYXNz=="]) {
    const { headers } = await changes(secrets).ofRequest({ path: "/", headers: [["Authorization", value]] });
    expect(headers[0]).toEqual(["Authorization", value]);
  }
});

test("a body is changed the same way wherever it is cut", async () => {
  const secrets = await open({ TEST_KEY: { hosts: ["a.test"], in: "body" } }, "xxaaxxaaxxaab");
  const placeholder = secrets.env["TEST_KEY"] ?? "";
  const part = fc.oneof(
    fc.constant(placeholder),
    fc.constant(placeholder.slice(0, -1)),
    fc.constant(placeholder.slice(1)),
    fc.string({ maxLength: 12 }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(part, { maxLength: 8 }), fc.array(fc.nat(60), { maxLength: 12 }), async (parts, cuts) => {
      const text = parts.join("");
      const { body } = await changes(secrets).ofRequest({ path: "/", headers: [] });
      const sent = await collect((body as NonNullable<typeof body>)(cut(Buffer.from(text), cuts)));
      expect(sent.toString()).toBe(text.replaceAll(placeholder, "xxaaxxaaxxaab"));
    }),
  );
});

test("an answer has no value in it wherever it is cut, and everything else", async () => {
  const value = 'xx"aaxx"aaxx"aab';
  const secrets = await open({ TEST_KEY: { hosts: ["a.test"] } }, value);
  const placeholder = secrets.env["TEST_KEY"] ?? "";
  const forms = [value, JSON.stringify(value).slice(1, -1), encodeURIComponent(value)];
  const part = fc.oneof(fc.constantFrom(...forms), fc.constant(value.slice(0, -1)), fc.string({ maxLength: 12 }));
  await fc.assert(
    fc.asyncProperty(fc.array(part, { maxLength: 8 }), fc.array(fc.nat(40), { maxLength: 12 }), async (parts, cuts) => {
      const text = parts.join("|");
      const shown = (
        await collect(changes(secrets).ofBody([])?.(cut(Buffer.from(text), cuts)) as AsyncIterable<Buffer>)
      ).toString();
      for (const form of forms) expect(shown).not.toContain(form);
      expect(shown).toBe(forms.reduce((all, form) => all.replaceAll(form, placeholder), text));
    }),
  );
});

test("an answer is searched for the values of many secrets nearly as fast as for one", async () => {
  const body = Buffer.from('{"text":"the quick brown fox, the-real and the-real-value"}'.repeat(1000));
  const costOf = async (count: number): Promise<number> => {
    const names = Array.from({ length: count }, (_, at) => `TEST_MANY_${at}`);
    for (const name of names) process.env[name] = `the-real-value-${name}-/+"`;
    try {
      const own = changes(await open(Object.fromEntries(names.map((name) => [name, { hosts: ["a.test"] }]))));
      const pieces = (): AsyncIterable<Buffer> => cut(body, []);
      await collect(own.ofBody([])?.(pieces()) ?? pieces());
      const start = process.cpuUsage();
      for (let round = 0; round < 100; round++) await collect(own.ofBody([])?.(pieces()) ?? pieces());
      return process.cpuUsage(start).user;
    } finally {
      for (const name of names) delete process.env[name];
    }
  };
  const one = await costOf(1);
  // It was 40 times as much when each form was searched for on its own.
  expect((await costOf(64)) / one).toBeLessThan(12);
});

test("an answer that can't be a value is not held back", async () => {
  const secrets = await open({ TEST_KEY: { hosts: ["a.test"] } });
  let send: (piece: Buffer) => void = () => undefined;
  async function* source(): AsyncGenerator<Buffer> {
    for (;;) yield await new Promise<Buffer>((resolve) => (send = resolve));
  }
  const answer = changes(secrets).ofBody([])?.(source())[Symbol.asyncIterator]();
  for (const event of ["data: 1\n\n", "data: the\n\n"]) {
    const next = answer?.next();
    send(Buffer.from(event));
    expect((await next)?.value?.toString()).toBe(event);
  }
});

test("compressed bodies pass as they are", async () => {
  const secrets = await open({ TEST_KEY: { hosts: ["a.test"], in: "body" } });
  const body = gzipSync("a body that compresses ".repeat(100));
  const pieces = changes(secrets).ofBody([["Content-Encoding", "gzip"]])?.(cut(body, [10, 50]));
  expect((await collect(pieces as AsyncIterable<Buffer>)).equals(body)).toBe(true);
  const request = { path: "/", headers: [["Content-Encoding", "gzip"]] as Headers };
  expect((await changes(secrets).ofRequest(request)).body).toBeUndefined();
});

test.each(["gzip", "br", "gzip, identity", "x"])(
  "a body that is not compressed, and is said to be, has no value in it: %s",
  async (coding) => {
    const secrets = await open({ TEST_KEY: { hosts: ["a.test"] } });
    const body = Buffer.from(`you sent ${VALUE}, and ${Buffer.from(VALUE).toString("base64")}`);
    const pieces = changes(secrets).ofBody([["Content-Encoding", coding]])?.(cut(body, [12]));
    const shown = (await collect(pieces as AsyncIterable<Buffer>)).toString();
    expect(shown).toMatch(/^you sent glovebox\w+, and glovebox\w+$/);
    expect(shown.length).toBe(body.length);
  },
);

test.each([
  ["JSON of PHP", 'aa/bb+cc<dd>&"ee', 'aa\\/bb+cc<dd>&\\"ee'],
  ["JSON of Go", 'aa/bb+cc<dd>&"ee', 'aa/bb+cc\\u003cdd\\u003e\\u0026\\"ee'],
  ["JSON of Java", "aa=bb'cc<dd>&", "aa\\u003dbb\\u0027cc\\u003cdd\\u003e\\u0026"],
  ["HTML", `aa/bb+cc<dd>&"ee'=`, "aa/bb+cc&lt;dd&gt;&amp;&quot;ee&#39;="],
  ["HTML of Python", `aa/bb+cc<dd>&"ee'=`, "aa/bb+cc&lt;dd&gt;&amp;&quot;ee&#x27;="],
  ["HTML of Go", `aa/bb+cc<dd>&"ee'=`, "aa/bb&#43;cc&lt;dd&gt;&amp;&#34;ee&#39;="],
  ["HTML of PHP", `aa/bb+cc<dd>&"ee'=`, "aa/bb+cc&lt;dd&gt;&amp;&quot;ee&#039;="],
  ["HTML of Handlebars", `aa/bb+cc<dd>&"ee'=`, "aa/bb+cc&lt;dd&gt;&amp;&quot;ee&#x27;&#x3D;"],
  ["HTML of Mustache", `aa/bb+cc<dd>&"ee'=`, "aa&#x2F;bb+cc&lt;dd&gt;&amp;&quot;ee&#39;&#x3D;"],
])("the value is masked in %s", async (_, value, written) => {
  const secrets = await open({ TEST_KEY: { hosts: ["a.test"] } }, value);
  const pieces = changes(secrets).ofBody([])?.(cut(Buffer.from(`<p>${written}</p>`), [7]));
  expect((await collect(pieces as AsyncIterable<Buffer>)).toString()).toBe(`<p>${secrets.env["TEST_KEY"]}</p>`);
});

test("the value is masked in the names and values of headers, and in base64 at each alignment", async () => {
  const secrets = await open({ TEST_KEY: { hosts: ["a.test"] } });
  const headers: Headers = ["", "u:", "us:", "usr:"].map((user) => [
    `X-${VALUE}`,
    Buffer.from(`${user}${VALUE}`).toString("base64"),
  ]);
  const shown = changes(secrets).ofHeaders(headers);
  for (const [name, value] of shown) {
    expect(name).toBe(`X-${secrets.env["TEST_KEY"]}`);
    expect(Buffer.from(value, "base64").toString("latin1")).not.toMatch(/real|value|0123/);
  }
});

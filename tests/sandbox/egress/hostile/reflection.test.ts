import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type OpenSecrets, openSecrets } from "../../../../src/sandbox/egress/secrets.js";
import { type InspectedOrigin, startInspectedOrigin } from "../../../support/egress/inspected-origin.js";
import { createScratch, type Scratch } from "../../../support/scratch.js";

const NAME = "hostile.test";
const VALUE = "the-real-value-0123456789";
const OK = "HTTP/1.1 200 OK\r\n";
const SHORT = `${OK}Content-Length: 2\r\n\r\nok`;

let scratch: Scratch;
let secrets: OpenSecrets;
let origin: InspectedOrigin;
let answer = "";

beforeAll(async () => {
  scratch = createScratch();
  process.env["TEST_KEY"] = VALUE;
  secrets = await openSecrets({ TEST_KEY: { hosts: [NAME] } }, { visible: [], network: () => "none" });
  const { broker } = secrets;
  const changesOf: typeof broker.changesOf = (host, _port, method) => broker.changesOf(host, 443, method);
  origin = await startInspectedOrigin(scratch.path, [NAME], { changesOf }, ({ headers }, response) => {
    const key = headers.find(([name]) => name.toLowerCase() === "x-api-key")?.[1] ?? "nothing";
    response.socket?.end(Buffer.from(answer.replaceAll("KEY", key), "latin1"));
  });
});

afterAll(async () => {
  await origin[Symbol.asyncDispose]();
  secrets.close();
  delete process.env["TEST_KEY"];
  scratch.remove();
});

/** All that a program gets back from a server that answers with these bytes. */
async function ask(bytes: string, method = "GET"): Promise<string> {
  answer = bytes;
  const before = origin.bytes().length;
  const tls = await origin.open(NAME);
  tls.end(`${method} / HTTP/1.1\r\nHost: ${NAME}:${origin.port}\r\nX-Api-Key: ${secrets.env["TEST_KEY"]}\r\n\r\n`);
  const got = await text(tls);
  expect(origin.bytes().slice(before)).toContain(`X-Api-Key: ${VALUE}\r\n`);
  return got;
}

test.each([
  ["a body of known length", `${OK}Content-Length: ${VALUE.length}\r\n\r\nKEY`],
  ["a body in chunks", `${OK}Transfer-Encoding: chunked\r\n\r\n${VALUE.length.toString(16)}\r\nKEY\r\n0\r\n\r\n`],
  ["a body up to the end of the connection", `${OK}\r\nKEY`],
  ["an answer of HTTP/1.0", "HTTP/1.0 200 OK\r\n\r\nKEY"],
  ["an error", "HTTP/1.1 500 Oops\r\n\r\nwrong key: KEY"],
  ["a header", `${OK}WWW-Authenticate: Basic realm="KEY"\r\nContent-Length: 0\r\n\r\n`],
  ["the name of a header", `${OK}X-KEY: 1\r\nContent-Length: 0\r\n\r\n`],
  ["a cookie", `${OK}Set-Cookie: a=1; b=KEY\r\nSet-Cookie: c=KEY\r\nContent-Length: 0\r\n\r\n`],
])("a server that repeats the value in %s has the placeholder shown", async (_, bytes) => {
  const got = await ask(bytes);
  expect(got).not.toContain(VALUE);
  expect(got).toContain(secrets.env["TEST_KEY"]);
});

test.each([
  ["the words of the status", `HTTP/1.1 200 KEY\r\nContent-Length: 2\r\n\r\nok`, "GET"],
  ["the words of a go-ahead", `HTTP/1.1 100 KEY\r\nX: KEY\r\n\r\n${SHORT}`, "POST"],
  ["early hints", `HTTP/1.1 103 Early Hints\r\nLink: <KEY>\r\n\r\n${SHORT}`, "GET"],
  ["a trailer", `${OK}Transfer-Encoding: chunked\r\nTrailer: X\r\n\r\n2\r\nok\r\n0\r\nX: KEY\r\n\r\n`, "GET"],
  ["an extension of a chunk", `${OK}Transfer-Encoding: chunked\r\n\r\n2;x=KEY\r\nok\r\n0\r\n\r\n`, "GET"],
  ["a header of the connection", `${OK}Connection: X-Own\r\nX-Own: KEY\r\nContent-Length: 2\r\n\r\nok`, "GET"],
  ["an answer behind the answer", `${SHORT}${OK}X: KEY\r\nContent-Length: 0\r\n\r\n`, "GET"],
  ["a body of HEAD", `${SHORT}KEY`, "HEAD"],
])("a server that repeats the value in %s has it left out", async (_, bytes, method) => {
  const got = await ask(bytes, method);
  expect(got).toMatch(/HTTP\/1\.1 200 OK\r\n/);
  if (method !== "HEAD") expect(got).toMatch(/ok(?:\r\n0\r\n\r\n)?$/);
  expect(got).not.toContain(VALUE);
  expect(got).not.toContain(secrets.env["TEST_KEY"]);
});

test.each([
  ["a folded header", `${OK}X: 1\r\n KEY\r\nContent-Length: 0\r\n\r\n`],
  ["no answer at all", "KEY\r\n\r\n"],
  ["two lengths", `${OK}Content-Length: 1\r\nContent-Length: 2\r\nX: KEY\r\n\r\nKEY`],
  ["another protocol", "HTTP/1.1 101 KEY\r\nUpgrade: h2c\r\nConnection: Upgrade\r\nX: KEY\r\n\r\nKEY"],
])("a server whose answer is malformed by %s gets the value shown nowhere", async (_, bytes) => {
  expect(await ask(bytes)).not.toContain(VALUE);
});

import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parseRules } from "../../../../src/sandbox/egress/policy.js";
import { type OpenSecrets, openSecrets } from "../../../../src/sandbox/egress/secrets.js";
import { type InspectedOrigin, startInspectedOrigin } from "../../../support/egress/inspected-origin.js";
import { createScratch, type Scratch } from "../../../support/scratch.js";

const NAME = "inspected.test";
const VALUE = "the-real-value-0123456789";
const RULES = parseRules({ allow: [{ host: NAME, methods: ["GET", "POST"], paths: ["/open/*"] }] });

let scratch: Scratch;
let secrets: OpenSecrets;
let origin: InspectedOrigin;
/** What the origin was asked, as it understood it. */
const asked: string[] = [];

beforeAll(async () => {
  scratch = createScratch();
  process.env["TEST_KEY"] = VALUE;
  secrets = await openSecrets(
    { TEST_KEY: { hosts: [NAME], header: "x-api-key" } },
    { visible: [], network: () => "none" },
  );
  const { broker } = secrets;
  origin = await startInspectedOrigin(
    scratch.path,
    [NAME],
    { changesOf: (host, _port, method) => broker.changesOf(host, 443, method) },
    ({ method, url, body }, response) => {
      asked.push(`${method} ${url} ${body}`);
      if (url !== "/open/switch") response.end("ok");
      else
        response.socket?.end("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    },
    (request) => RULES.checkRequest(NAME, 443, request),
  );
});

afterAll(async () => {
  await origin[Symbol.asyncDispose]();
  secrets.close();
  delete process.env["TEST_KEY"];
  scratch.remove();
});

const FIELDS = "Host: HOST\r\nX-Api-Key: KEY\r\n";
const LINE = `POST /open/a HTTP/1.1\r\n${FIELDS}`;
/** A request that no rule allows. */
const HIDDEN = `GET /private HTTP/1.1\r\n${FIELDS}\r\n`;

/** Fills in what is known only now. */
function filled(message: string): string {
  return message.replaceAll("HOST", `${NAME}:${origin.port}`).replaceAll("KEY", secrets.env["TEST_KEY"] ?? "");
}

interface Outcome {
  /** The statuses that came back. */
  statuses: string[];
  /** What the origin got, byte for byte, and what it made of that. */
  sent: string;
  asked: string[];
}

/** Sends bytes within TLS, and nothing after them. */
async function say(message: string): Promise<Outcome> {
  const before = { bytes: origin.bytes().length, asked: asked.length };
  const tls = await origin.open(NAME);
  tls.end(Buffer.from(filled(message), "latin1"));
  const statuses = (await text(tls)).match(/(?<=^|\n|ok)HTTP\/1\.1 \d{3}/g) ?? [];
  return {
    statuses: statuses.map((line) => line.slice(-3)),
    sent: origin.bytes().slice(before.bytes),
    asked: asked.slice(before.asked),
  };
}

describe("a request that two servers could understand differently", () => {
  const chunked = "Transfer-Encoding: chunked\r\n";
  const hiddenLater = `0\r\n\r\n${HIDDEN}`;

  test.each([
    ["a length and chunks", `${LINE}Content-Length: 5\r\n${chunked}\r\n${hiddenLater}`],
    ["chunks and a length", `${LINE}${chunked}Content-Length: 5\r\n\r\n${hiddenLater}`],
    ["two lengths", `${LINE}Content-Length: 0\r\nContent-Length: 200\r\n\r\n${HIDDEN}`],
    ["a list of lengths", `${LINE}Content-Length: 0, 200\r\n\r\n${HIDDEN}`],
    ["a length with a sign", `${LINE}Content-Length: +0\r\n\r\n${HIDDEN}`],
    ["a length that servers don't tell from theirs", `${LINE}Content_Length: 200\r\n\r\n${HIDDEN}`],
    ["chunks that servers don't tell from theirs", `${LINE}Transfer_Encoding: chunked\r\n\r\n${hiddenLater}`],
    ["another coding", `${LINE}Transfer-Encoding: xchunked\r\n\r\n${hiddenLater}`],
    ["two codings", `${LINE}Transfer-Encoding: identity, chunked\r\n\r\n${hiddenLater}`],
    ["two lines of codings", `${LINE}Transfer-Encoding: identity\r\n${chunked}\r\n${hiddenLater}`],
    ["a coding behind a vertical tab", `${LINE}Transfer-Encoding: \x0bchunked\r\n\r\n${hiddenLater}`],
    ["a space before the colon", `${LINE}Transfer-Encoding : chunked\r\n\r\n${hiddenLater}`],
    ["a folded line", `${LINE}X: 1\r\n ${chunked}\r\n${hiddenLater}`],
    ["a line that ends without CR", `${LINE}X: 1\n${chunked}\r\n${hiddenLater}`],
    ["a CR within a line", `${LINE}X: 1\r${chunked}\r\n${hiddenLater}`],
    ["a NUL", `${LINE}X: \0\r\n\r\n${HIDDEN}`],
    ["chunks of HTTP/1.0", `${LINE.replace("1.1", "1.0")}${chunked}\r\n${hiddenLater}`],
    ["no version", "GET /private\r\n\r\n"],
    ["a version to come", HIDDEN.replace("1.1", "1.2")],
    ["an empty line first", `\r\n${HIDDEN}`],
    ["two Hosts", `${LINE}Host: evil.test\r\n\r\n`],
    ["the same Host twice", `${LINE}Host: HOST\r\n\r\n`],
    ["another Host", LINE.replace("HOST", "evil.test").concat("\r\n")],
    ["the Host at another port", LINE.replace("HOST", `${NAME}:1`).concat("\r\n")],
    ["a Host with a user", LINE.replace("HOST", "evil.test@HOST").concat("\r\n")],
    ["two names in a Host", LINE.replace("HOST", "HOST, evil.test").concat("\r\n")],
    ["no Host", "GET /open/a HTTP/1.1\r\nX-Api-Key: KEY\r\n\r\n"],
    ["a whole address of another host", `GET https://evil.test/open/a HTTP/1.1\r\n${FIELDS}\r\n`],
    ["a whole address of its own host", `GET https://HOST/open/a HTTP/1.1\r\n${FIELDS}\r\n`],
    ["a plain address of its own host", `GET http://HOST/open/a HTTP/1.1\r\n${FIELDS}\r\n`],
    ["a path that could be a host", `GET //evil.test/open/a HTTP/1.1\r\n${FIELDS}\r\n`],
    ["a path that leads back", `GET /open/../private HTTP/1.1\r\n${FIELDS}\r\n`],
    ["a tunnel within the tunnel", `CONNECT HOST HTTP/1.1\r\n${FIELDS}\r\n${HIDDEN}`],
    ["another method by a header", `${LINE}X-HTTP-Method-Override: DELETE\r\n\r\n`],
    ["another method by a header with other dashes", `${LINE}X_HTTP_Method_Override: DELETE\r\n\r\n`],
    ["the preface of HTTP/2", `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n${HIDDEN}`],
  ])("is refused: %s", async (_, message) => {
    const { statuses, sent } = await say(message);
    expect(sent).toBe("");
    expect(statuses).toHaveLength(1);
    expect(["400", "403"]).toContain(statuses[0]);
  });

  test.each([
    ["a chunk that is longer than it says", `3\r\nhello\r\n${hiddenLater}`],
    ["a size with a sign", `+5\r\nhello\r\n${hiddenLater}`],
    ["a size that is too large", `fffffffffffffffff\r\nhello\r\n${hiddenLater}`],
    ["an extension", `5;a="\n"\r\nhello\r\n${hiddenLater}`],
    ["a line that ends without CR", `5\nhello\r\n${hiddenLater}`],
    ["a chunk without an end", `5\r\nhello${hiddenLater}`],
  ])("is broken off in its body: %s", async (_, body) => {
    const { statuses, sent, asked: whole } = await say(`${LINE}${chunked}\r\n${body}`);
    expect(statuses).toEqual(["400"]);
    expect(whole).toEqual([]);
    expect(sent).not.toMatch(/\r\n0\r\n\r\n|private/);
  });
});

describe("a request behind another", () => {
  test("is checked by itself", async () => {
    const { statuses, asked: all, sent } = await say(`${LINE}Content-Length: 2\r\n\r\nhi${HIDDEN}`);
    expect(statuses).toEqual(["200", "403"]);
    expect(all).toEqual(["POST /open/a hi"]);
    expect(sent).not.toContain("private");
  });

  test("is a body where the length says so, and gets no value", async () => {
    const body = filled(HIDDEN);
    const { statuses, asked: all, sent } = await say(`${LINE}Content-Length: ${body.length}\r\n\r\n${HIDDEN}`);
    expect(statuses).toEqual(["200"]);
    expect(all).toEqual([`POST /open/a ${body}`]);
    expect(sent.split(VALUE)).toHaveLength(2);
    expect(sent).toContain(`Content-Length: ${body.length}\r\n`);
  });

  test("is a chunk where its size says so, and what follows the chunks is left out", async () => {
    const body = filled(HIDDEN);
    const size = body.length.toString(16);
    const trailer = "X-Api-Key: KEY\r\nContent-Length: 0\r\nX-HTTP-Method: DELETE\r\n";
    const message = `${LINE}transfer-encoding: Chunked\r\n\r\n${size}\r\n${HIDDEN}\r\n0\r\n${trailer}\r\n`;
    const { statuses, asked: all, sent } = await say(message);
    expect(statuses).toEqual(["200"]);
    expect(all).toEqual([`POST /open/a ${body}`]);
    expect(sent.split(VALUE)).toHaveLength(2);
    expect(sent.endsWith("\r\n0\r\n\r\n")).toBe(true);
  });

  test("is checked when the origin refuses the WebSocket before it", async () => {
    const upgrade = `GET /open/a HTTP/1.1\r\n${FIELDS}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`;
    const { statuses, asked: all } = await say(`${upgrade}${HIDDEN}`);
    expect(statuses).toEqual(["200", "403"]);
    expect(all).toEqual(["GET /open/a "]);
  });

  test("is not reached by a change of protocol that nobody asked for", async () => {
    const { statuses, asked: all } = await say(`GET /open/switch HTTP/1.1\r\n${FIELDS}\r\n${HIDDEN}`);
    expect(statuses).toEqual(["502"]);
    expect(all).toEqual(["GET /open/switch "]);
  });

  test("is not reached by a change to HTTP/2 without TLS", async () => {
    const settings = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n";
    const { statuses, sent } = await say(`GET /open/a HTTP/1.1\r\n${FIELDS}${settings}\r\n${HIDDEN}`);
    expect(statuses).toEqual(["200", "403"]);
    expect(sent).toContain("GET /open/a HTTP/1.1");
    expect(sent).not.toMatch(/h2c|HTTP2-Settings|private/i);
  });
});

test("a Host without the port of the tunnel is sent on with it", async () => {
  const { statuses, sent } = await say(LINE.replace("HOST", NAME).concat("\r\n"));
  expect(statuses).toEqual(["200"]);
  expect(sent).toContain(`\r\nHost: ${NAME}:${origin.port}\r\n`);
});

import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { type RequestOptions, request } from "node:https";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type OpenSecrets, openSecrets } from "../../../src/sandbox/egress/secrets.js";
import { type InspectedOrigin, startInspectedOrigin } from "../../support/egress/inspected-origin.js";
import { createScratch, type Scratch } from "../../support/scratch.js";

const NAME = "streaming.test";
const VALUE = "the-real-value-0123456789";

let scratch: Scratch;
let secrets: OpenSecrets;
let origin: InspectedOrigin;
/** Lets the origin go on with its answer. It does so by itself after a while, and is late then. */
let goOn: (isLate: boolean) => void;

beforeAll(async () => {
  scratch = createScratch();
  process.env["TEST_KEY"] = VALUE;
  const hosts = [NAME];
  const rules = {
    TEST_KEY: { hosts, header: "x-api-key" },
    TEST_BODY: { hosts, in: "body", from: { env: "TEST_KEY" } },
  };
  secrets = await openSecrets(rules as Parameters<typeof openSecrets>[0], { visible: [], network: () => "none" });
  const { broker } = secrets;
  const changesOf: typeof broker.changesOf = (host, _port, method) => broker.changesOf(host, 443, method);
  origin = await startInspectedOrigin(scratch.path, [NAME], { changesOf }, async (received, response) => {
    const key = received.headers.find(([name]) => name.toLowerCase() === "x-api-key")?.[1] ?? "nothing";
    response.setHeader("Content-Type", "text/event-stream");
    response.flushHeaders();
    for (const each of ["one", "two", "three"]) {
      response.write(`data: ${each} for ${key}\n\n`);
      const isLate = await new Promise<boolean>((resolve) => {
        goOn = resolve;
        setTimeout(resolve, 30_000, true).unref();
      });
      if (isLate) response.destroy(new Error("nobody saw it in time"));
    }
    response.end();
  });
});

afterAll(async () => {
  await origin[Symbol.asyncDispose]();
  secrets.close();
  delete process.env["TEST_KEY"];
  scratch.remove();
});

const options = (): RequestOptions => ({
  agent: origin.agent,
  host: NAME,
  port: origin.port,
  headers: { "X-Api-Key": secrets.env["TEST_KEY"] ?? "" },
});

/** Reads an answer, and lets the origin go on each time that something came. */
async function readEvents(response: IncomingMessage): Promise<string[]> {
  const events: string[] = [];
  for await (const chunk of response) {
    events.push(String(chunk));
    goOn(false);
  }
  return events;
}

test("each part of an answer comes before the next is written, with the value taken out", async () => {
  const outgoing = request(options()).end();
  const [response] = (await once(outgoing, "response")) as [IncomingMessage];
  const key = secrets.env["TEST_KEY"];
  expect(await readEvents(response)).toEqual(["one", "two", "three"].map((each) => `data: ${each} for ${key}\n\n`));
});

test.each([
  ["in chunks", 100],
  ["of a known length", 400_000],
])("each part of a body %s is sent on before the next is written, with the value put in", async (how, size) => {
  const headers = how === "in chunks" ? {} : { "Content-Length": size };
  const outgoing = request({ ...options(), method: "POST", headers });
  const before = origin.bytes().length;
  const parts = ["first", "second"].map((each) => `${each} ${secrets.env["TEST_BODY"]}\n`);
  for (const part of parts) {
    outgoing.write(part);
    const expected = part.replace(secrets.env["TEST_BODY"] ?? "", VALUE);
    await expect.poll(() => origin.bytes().slice(before)).toContain(expected);
  }
  outgoing.end("x".repeat(size - parts.join("").length));
  const [response] = (await once(outgoing, "response")) as [IncomingMessage];
  expect(await readEvents(response)).toHaveLength(3);
});

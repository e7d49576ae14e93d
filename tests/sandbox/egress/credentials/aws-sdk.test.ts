import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { Rewriting } from "../../../../src/sandbox/egress/forward.js";
import type { AwsKeys } from "../../../../src/sandbox/egress/secrets/credentials/aws-signature.js";
import { createAwsSigner, makePlaceholderKeys } from "../../../../src/sandbox/egress/secrets/credentials.js";
import { describeUnless } from "../../../support/describe-unless.js";
import { type AwsClient, isSignedBy, loadAws, toDate, whyNoAwsSdk } from "../../../support/egress/aws-sdk.js";
import { type InspectedOrigin, type Received, startInspectedOrigin } from "../../../support/egress/inspected-origin.js";
import { createScratch, type Scratch } from "../../../support/scratch.js";

const S3 = "s3.eu-central-1.amazonaws.com";
const STS = "sts.eu-central-1.amazonaws.com";
const DYNAMODB = "dynamodb.eu-central-1.amazonaws.com";
const REAL: AwsKeys = {
  accessKeyId: "AKIAREALREALREALREAL",
  secretAccessKey: "real/secret+key/real/secret+key/real1234",
};
const TEMPORARY: AwsKeys = { ...REAL, accessKeyId: "ASIAREALREALREALREAL", sessionToken: "real-session-token==" };
const placeholder = makePlaceholderKeys();
const nothing: Rewriting = {
  ofRequest: async (request) => request,
  ofHeaders: (headers) => headers,
  ofBody: () => undefined,
};

describeUnless(whyNoAwsSdk, "the AWS SDK's own clients, with a placeholder's keys", {}, () => {
  let scratch: Scratch;
  let origin: InspectedOrigin;
  let keys = REAL;
  let received: Received[] = [];
  const clients: AwsClient[] = [];

  beforeAll(async () => {
    scratch = createScratch();
    const signer = createAwsSigner({ placeholderId: placeholder.accessKeyId, keys: async () => keys });
    const broker = { changesOf: (_host: string, _port: number, method: string) => signer.changesOf(method, nothing) };
    origin = await startInspectedOrigin(scratch.path, [S3, STS, DYNAMODB], broker, async (request, response) => {
      received.push(request);
      if (!(await isSignedBy(request, keys))) {
        response.writeHead(403).end("<Error><Code>SignatureDoesNotMatch</Code></Error>");
        return;
      }
      const host = request.headers.find(([name]) => name.toLowerCase() === "host")?.[1] ?? "";
      if (host.startsWith("dynamodb")) {
        response.setHeader("x-amz-crc32", "2745614147");
        response.setHeader("Content-Type", "application/x-amz-json-1.0").end("{}");
      } else if (host.startsWith("sts")) {
        const result = "<GetCallerIdentityResult><Account>123456789012</Account></GetCallerIdentityResult>";
        response.setHeader("Content-Type", "text/xml");
        response.end(`<GetCallerIdentityResponse>${result}</GetCallerIdentityResponse>`);
      } else response.end();
    });
  });

  beforeEach(() => {
    keys = REAL;
    received = [];
  });

  afterAll(async () => {
    for (const client of clients) client.destroy();
    await origin[Symbol.asyncDispose]();
    scratch.remove();
  });

  function open(name: string, className: string, host: string, opts: object = {}): AwsClient {
    const Handler = loadAws("@smithy/node-http-handler")["NodeHttpHandler"];
    const Client = loadAws(name)[className];
    if (!Handler || !Client) throw new Error(`the AWS SDK has no ${className}`);
    const client = new Client({
      ...{ region: "eu-central-1", credentials: placeholder, endpoint: `https://${host}:${origin.port}` },
      ...{ requestHandler: new Handler({ httpsAgent: origin.agent }), maxAttempts: 1, ...opts },
    }) as AwsClient;
    clients.push(client);
    return client;
  }

  function s3(command: string, input: object, opts: object = {}): Promise<Record<string, unknown>> {
    const Command = loadAws("@aws-sdk/client-s3")[command];
    if (!Command) throw new Error(`the AWS SDK has no ${command}`);
    const client = open("@aws-sdk/client-s3", "S3Client", S3, { forcePathStyle: true, ...opts });
    return client.send(new Command({ Bucket: "bucket", ...input }) as object);
  }

  const headerOf = (request: Received | undefined, wanted: string): string | undefined =>
    request?.headers.find(([name]) => name.toLowerCase() === wanted)?.[1];

  test("put an object in S3, under a name that needs encoding", async () => {
    await s3("PutObjectCommand", { Key: "a b/ü+(1)~*'.txt", Body: "hello", Metadata: { note: "two  spaces" } });
    expect(received).toHaveLength(1);
    expect(received[0]).toMatchObject({ method: "PUT", body: Buffer.from("hello") });
    expect(received[0]?.url).toContain("/bucket/a%20b/%C3%BC%2B%281%29~%2A%27.txt");
  });

  test("list objects, with parameters to sort and to encode", async () => {
    await s3("ListObjectsV2Command", { Prefix: "a b/+&=", Delimiter: "/", StartAfter: "é" });
    expect(received[0]?.url).toContain("list-type=2");
  });

  test("put a stream in S3: the head is signed, its pieces are not", async () => {
    const Body = Readable.from([Buffer.alloc(100_000, "x")]);
    await s3("PutObjectCommand", { Key: "stream", Body, ContentLength: 100_000 });
    expect(headerOf(received[0], "x-amz-content-sha256")).toBe("STREAMING-UNSIGNED-PAYLOAD-TRAILER");
    expect(received[0]?.body.length).toBeGreaterThan(100_000);
  });

  test("write to DynamoDB", async () => {
    const Command = loadAws("@aws-sdk/client-dynamodb")["PutItemCommand"];
    const client = open("@aws-sdk/client-dynamodb", "DynamoDBClient", DYNAMODB);
    await client.send(Command && new Command({ TableName: "t", Item: { id: { S: "é".repeat(1000) } } }));
    expect(headerOf(received[0], "authorization")).toContain("content-length;");
  });

  test("ask STS, with keys that expire", async () => {
    keys = TEMPORARY;
    const Command = loadAws("@aws-sdk/client-sts")["GetCallerIdentityCommand"];
    const client = open("@aws-sdk/client-sts", "STSClient", STS);
    const answer = await client.send(Command && new Command({}));
    expect(answer).toMatchObject({ Account: "123456789012" });
    expect(headerOf(received[0], "x-amz-security-token")).toBe(TEMPORARY.sessionToken);
  });

  test("work with a clock that is off by a day", async () => {
    await s3("PutObjectCommand", { Key: "late", Body: "x" }, { systemClockOffset: 86_400_000 });
    const date = toDate(headerOf(received[0], "x-amz-date") ?? "");
    expect(Math.abs(date.getTime() - Date.now())).toBeLessThan(300_000);
  });

  test("a body without a hash of its own is read and signed, also when the program waits for a word", async () => {
    const body = JSON.stringify({ TableName: "t".repeat(10_000) });
    const date = new Date().toISOString().replace(/[-:]|\.\d{3}/g, "");
    const credential = `${placeholder.accessKeyId}/${date.slice(0, 8)}/eu-central-1/dynamodb/aws4_request`;
    const answer = await origin.send(
      DYNAMODB,
      {
        method: "POST",
        headers: {
          ...{ "X-Amz-Date": date, Expect: "100-continue", "Content-Length": `${body.length}` },
          Authorization: `AWS4-HMAC-SHA256 Credential=${credential}, SignedHeaders=content-length;host;x-amz-date, Signature=00`,
        },
      },
      body,
    );
    expect(answer.status).toBe(200);
    expect(received[0]?.body.toString()).toBe(body);
    expect(headerOf(received[0], "expect")).toBeUndefined();
    expect(headerOf(received[0], "x-amz-content-sha256")).toBeUndefined();
  });

  test("a body that is too large to be read is refused", async () => {
    const date = new Date().toISOString().replace(/[-:]|\.\d{3}/g, "");
    const credential = `${placeholder.accessKeyId}/${date.slice(0, 8)}/eu-central-1/dynamodb/aws4_request`;
    const answer = await origin.send(
      DYNAMODB,
      {
        method: "POST",
        headers: {
          ...{ "X-Amz-Date": date, "Content-Length": `${17 << 20}` },
          Authorization: `AWS4-HMAC-SHA256 Credential=${credential}, SignedHeaders=host;x-amz-date, Signature=00`,
        },
      },
      Buffer.alloc(17 << 20),
    );
    expect(answer).toMatchObject({ status: 413 });
    expect(received).toEqual([]);
  });

  test("a signature for each piece is refused, and the answer names the case", async () => {
    const answer = await origin.send(S3, {
      method: "PUT",
      headers: {
        "X-Amz-Date": "20261118T100000Z",
        "X-Amz-Content-Sha256": "STREAMING-AWS4-HMAC-SHA256-PAYLOAD",
        Authorization: `AWS4-HMAC-SHA256 Credential=${placeholder.accessKeyId}/20261118/x/s3/aws4_request, SignedHeaders=host, Signature=00`,
      },
    });
    expect(answer).toMatchObject({ status: 403, body: expect.stringContaining("STREAMING-AWS4-HMAC-SHA256-PAYLOAD") });
    expect(received).toEqual([]);
  });

  test("a signature by other keys passes as it is, and fails there", async () => {
    const other = { credentials: { ...placeholder, accessKeyId: "AKIASOMEBODYELSESKEY" } };
    await expect(s3("PutObjectCommand", { Key: "k", Body: "x" }, other)).rejects.toMatchObject({
      $metadata: { httpStatusCode: 403 },
    });
    expect(headerOf(received[0], "authorization")).toContain("AKIASOMEBODYELSESKEY");
  });

  test("the checker itself sees a body that was changed", async () => {
    await s3("PutObjectCommand", { Key: "k", Body: "x" });
    const [request] = received;
    if (request === undefined) throw new Error("nothing came");
    const hash = createHash("sha256").update("y").digest("hex");
    const headers = request.headers.map(([name, value]): readonly [string, string] => [
      name,
      name.toLowerCase() === "x-amz-content-sha256" ? hash : value,
    ]);
    expect(await isSignedBy({ ...request, headers }, REAL)).toBe(false);
    expect(await isSignedBy(request, REAL)).toBe(true);
  });
});

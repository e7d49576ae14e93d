import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { sha256, signatureOf } from "../../../../src/sandbox/egress/secrets/credentials/aws-canonical.js";
import {
  awsKeysFromEnv,
  makePlaceholderKeys,
  parseAwsKeys,
} from "../../../../src/sandbox/egress/secrets/credentials/aws-keys.js";
import {
  type AwsKeys,
  type AwsRequest,
  signAnew,
} from "../../../../src/sandbox/egress/secrets/credentials/aws-signature.js";
import { signWithSdk, whyNoAwsSdk } from "../../../support/egress/aws-sdk.js";

const EMPTY = sha256("");
const REAL: AwsKeys = {
  accessKeyId: "AKIAREALREALREALREAL",
  secretAccessKey: "real/secret+key/real/secret+key/real1234",
};
const TEMPORARY: AwsKeys = { ...REAL, accessKeyId: "ASIAREALREALREALREAL", sessionToken: "real-session-token==" };
const PLACEHOLDER = makePlaceholderKeys();
const ID = PLACEHOLDER.accessKeyId;
const NOW = Date.parse("2026-11-18T10:00:00Z");
const HOST = "dynamodb.eu-central-1.amazonaws.com";

function authorization(opts: { id?: string; date?: string; service?: string; signed?: string } = {}): string {
  const { id = ID, date = "20261118", service = "dynamodb", signed = "host;x-amz-date" } = opts;
  const credential = `Credential=${id}/${date}/eu-central-1/${service}/aws4_request`;
  return `AWS4-HMAC-SHA256 ${credential}, SignedHeaders=${signed}, Signature=${"0".repeat(64)}`;
}

function request(headers: Record<string, string>, opts: Partial<AwsRequest> = {}): AwsRequest {
  const usual = { Host: HOST, "X-Amz-Date": "20261118T100000Z", Authorization: authorization() };
  return {
    method: "POST",
    path: "/",
    headers: Object.entries({ ...usual, ...headers }),
    body: async () => Buffer.alloc(0),
    ...opts,
  };
}

async function sign(asked: AwsRequest, keys = REAL, now = NOW): Promise<Record<string, string> | undefined> {
  const signed = await signAnew(asked, ID, async () => keys, now);
  return signed && Object.fromEntries(signed.map(([name, value]) => [name.toLowerCase(), value]));
}

describe("AWS's published examples", () => {
  test("get-vanilla of the test suite", () => {
    const headers = [
      ["host", "example.amazonaws.com"],
      ["x-amz-date", "20150830T123600Z"],
    ] as const;
    const scope = { time: "20150830T123600Z", region: "us-east-1", service: "service" };
    const asked = { method: "GET", path: "/", query: "", headers, payload: EMPTY };
    expect(signatureOf(asked, scope, "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")).toBe(
      "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
    );
  });

  test("GET Object of S3's documentation", () => {
    const headers = [
      ["host", "examplebucket.s3.amazonaws.com"],
      ["range", "bytes=0-9"],
      ["x-amz-content-sha256", EMPTY],
      ["x-amz-date", "20130524T000000Z"],
    ] as const;
    const scope = { time: "20130524T000000Z", region: "us-east-1", service: "s3" };
    const asked = { method: "GET", path: "/test.txt", query: "", headers, payload: EMPTY };
    expect(signatureOf(asked, scope, "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")).toBe(
      "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
    );
  });
});

describe("signing anew", () => {
  const segment = fc.string({ unit: fc.constantFrom(..."ab.~-_ %+=&@/*é€\"'()"), maxLength: 8 });
  const encoded = segment.map(encodeURIComponent);

  test("agrees with the SDK's own signer, whatever the request", async ({ skip }) => {
    if (whyNoAwsSdk !== undefined) return skip(whyNoAwsSdk);
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom("s3", "dynamodb", "sts"),
        fc.array(encoded, { maxLength: 4 }),
        fc.dictionary(
          segment.filter((name) => !/^x-amz-/i.test(name) && name !== ""),
          fc.array(segment, { minLength: 1, maxLength: 3 }),
          { maxKeys: 4 },
        ),
        fc.uint8Array({ maxLength: 40 }),
        fc.string({ unit: fc.constantFrom(..."ab ,;="), maxLength: 12 }),
        fc.constantFrom(REAL, TEMPORARY),
        async (service, parts, query, bytes, value, keys) => {
          const body = Buffer.from(bytes);
          const path = `/${parts.join("/")}`;
          const hash = service === "s3" ? { "x-amz-content-sha256": sha256(body) } : {};
          const headers = { host: HOST, "x-amz-date": "20261118T100000Z", "x-amz-meta-a": value, ...hash };
          const search = Object.entries(query).flatMap(([name, values]) =>
            values.map((each) => `${encodeURIComponent(name)}=${encodeURIComponent(each)}`),
          );
          const asked: AwsRequest = {
            method: "PUT",
            path: search.length > 0 ? `${path}?${search.join("&")}` : path,
            headers: Object.entries({
              ...headers,
              authorization: authorization({ service, signed: Object.keys(headers).sort().join(";") }),
            }),
            body: async () => body,
          };
          const signed = await sign(asked, keys);
          const wanted = await signWithSdk(
            { method: "PUT", path, query, headers, body },
            { keys, region: "eu-central-1", service, date: new Date(NOW) },
          );
          expect(signed?.["authorization"]).toBe(wanted);
        },
      ),
      { numRuns: 300 },
    );
  });

  test("a request that names no placeholder passes as it is", async () => {
    expect(await sign(request({ Authorization: authorization({ id: "AKIASOMEBODYELSESKEY" }) }))).toBeUndefined();
    expect(await sign(request({ Authorization: "Bearer something" }))).toBeUndefined();
  });

  test("keys that expire bring their token, signed; others take it away", async () => {
    const asked = request({
      "X-Amz-Security-Token": "something",
      Authorization: authorization({ signed: "host;x-amz-date;x-amz-security-token" }),
    });
    expect(await sign(asked, TEMPORARY)).toMatchObject({
      "x-amz-security-token": TEMPORARY.sessionToken,
      authorization: expect.stringContaining("SignedHeaders=host;x-amz-date;x-amz-security-token,"),
    });
    const without = await sign(asked, REAL);
    expect(without).not.toHaveProperty("x-amz-security-token");
    expect(without?.["authorization"]).toContain("SignedHeaders=host;x-amz-date,");
  });

  test.each([
    ["a day behind", "20261117T100000Z", "20261117"],
    ["a day ahead", "20261119T100000Z", "20261119"],
    ["six minutes behind", "20261118T095400Z", "20261118"],
    ["no time at all", "tomorrow", "20261118"],
  ])("a clock that is off gets this machine's time: %s", async (_, time, date) => {
    const signed = await sign(request({ "X-Amz-Date": time, Authorization: authorization({ date }) }));
    expect(signed).toMatchObject({
      "x-amz-date": "20261118T100000Z",
      authorization: expect.stringContaining(`Credential=${REAL.accessKeyId}/20261118/eu-central-1/`),
    });
  });

  test("a clock that is nearly right keeps its time", async () => {
    const signed = await sign(request({ "X-Amz-Date": "20261118T095600Z" }));
    expect(signed).toMatchObject({ "x-amz-date": "20261118T095600Z" });
  });

  test("neither the secret key nor a placeholder is in what is sent", async () => {
    const sent = JSON.stringify(await sign(request({}), TEMPORARY));
    expect(sent).not.toContain(REAL.secretAccessKey);
    expect(sent).not.toContain("GLOVEBOX");
  });

  const sigV4A = authorization().replace("AWS4-HMAC-SHA256", "AWS4-ECDSA-P256-SHA256");
  const hash = (value: string): AwsRequest => request({ "X-Amz-Content-Sha256": value });
  test.each([
    ["chunks", hash("STREAMING-AWS4-HMAC-SHA256-PAYLOAD"), "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"],
    ["chunks with a trailer", hash("STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"), "PAYLOAD-TRAILER"],
    ["events", hash("STREAMING-AWS4-HMAC-SHA256-EVENTS"), "each piece of the body"],
    ["another hash", hash("abc"), "no hash"],
    ["SigV4A", request({ Authorization: sigV4A }), "SigV4A"],
    ["version 2", request({ Authorization: `AWS ${ID}:c2lnbmF0dXJl` }), "other than AWS4-HMAC-SHA256"],
    ["a presigned URL", request({}, { path: `/a?X-Amz-Credential=${ID}%2F2026&X-Amz-Signature=00` }), "presigned"],
    ["no Host", request({ Authorization: authorization({ signed: "x-amz-date" }) }), "does not cover the Host"],
    ["a header that is gone", request({ Authorization: authorization({ signed: "host;te" }) }), "the header te"],
    ["a name that is none", request({ Authorization: authorization({ signed: "host;a b" }) }), "malformed"],
    ["an incomplete header", request({ Authorization: `AWS4-HMAC-SHA256 Credential=${ID}/` }), "malformed"],
    ["a second header", { ...request({}), headers: [...request({}).headers, ["authorization", "x"]] }, "two Auth"],
  ] as [string, AwsRequest, string][])("is refused, and the case is named: %s", async (_, asked, named) => {
    await expect(sign(asked)).rejects.toMatchObject({ status: 403, message: expect.stringContaining(named) });
  });

  test("a clock that is off and not signed is refused", async () => {
    const asked = request({ "X-Amz-Date": "20261117T100000Z", Authorization: authorization({ signed: "host" }) });
    await expect(sign(asked)).rejects.toMatchObject({ status: 403, message: expect.stringContaining("x-amz-date") });
  });

  test("whatever the header is, it is signed, passed or refused; never an accident", async () => {
    const word = fc.constantFrom(
      ID,
      ...["AWS4-HMAC-SHA256 ", "Credential=", "/", "SignedHeaders=", ";", ",", "=", " "],
    );
    const value = fc.array(fc.oneof(word, fc.string({ maxLength: 6 }))).map((words) => words.join(""));
    await fc.assert(
      fc.asyncProperty(value, value, async (header, path) => {
        const asked = request({ Authorization: header }, { path: `/?${path}` });
        await sign(asked).catch((error: unknown) => expect(error).toMatchObject({ name: "Refusal", status: 403 }));
      }),
    );
  });
});

describe("keys", () => {
  const json = { Version: 1, AccessKeyId: REAL.accessKeyId, SecretAccessKey: REAL.secretAccessKey };

  test("are read as AWS's programs print them", () => {
    const expiresAt = Date.now() + 3_600_000;
    const printed = { ...json, SessionToken: "token", Expiration: new Date(expiresAt).toISOString() };
    expect(parseAwsKeys("AWS", JSON.stringify(printed))).toEqual({ ...REAL, sessionToken: "token", expiresAt });
  });

  test("are read from the profile named default", () => {
    const file = [
      "[other]\naws_access_key_id = AKIAOTHEROTHEROTHERO\naws_secret_access_key = no",
      `[default]\naws_access_key_id=${REAL.accessKeyId}\naws_secret_access_key = ${REAL.secretAccessKey}\n`,
    ].join("\n# comment\n");
    expect(parseAwsKeys("AWS", file)).toEqual(REAL);
  });

  test("are read from AWS's variables", () => {
    const { accessKeyId, secretAccessKey } = REAL;
    const env = { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey, AWS_SESSION_TOKEN: "" };
    expect(awsKeysFromEnv("AWS", env)).toEqual({ ...REAL, sessionToken: undefined });
    expect(() => awsKeysFromEnv("AWS", { ...env, AWS_SECRET_ACCESS_KEY: undefined })).toThrow(
      "Secret AWS has no value: AWS_SECRET_ACCESS_KEY is not set",
    );
  });

  test.each([
    ["broken JSON", `{"AccessKeyId": "${REAL.secretAccessKey}`, "start like JSON"],
    ["no id", JSON.stringify({ SecretAccessKey: REAL.secretAccessKey }), "no access key id"],
    ["no secret", JSON.stringify({ AccessKeyId: REAL.accessKeyId }), "no secret access key"],
    ["a time that is none", JSON.stringify({ ...json, Expiration: "soon" }), "Expiration"],
    ["expired keys", JSON.stringify({ ...json, Expiration: "2020-01-01T00:00:00Z" }), "expired"],
    ["a line end in the token", JSON.stringify({ ...json, SessionToken: "a\r\nb" }), "session token"],
    ["something else", REAL.secretAccessKey, "neither JSON nor a profile"],
  ])("are refused without showing them: %s", (_, text, why) => {
    const read = (): unknown => parseAwsKeys("MY_AWS", text);
    expect(read).toThrow(expect.objectContaining({ code: "unauthenticated", message: expect.stringContaining(why) }));
    expect(read).toThrow(expect.objectContaining({ message: expect.not.stringContaining(REAL.secretAccessKey) }));
  });
});

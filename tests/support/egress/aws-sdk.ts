import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import type { AwsKeys } from "../../../src/sandbox/egress/secrets/credentials/aws-signature.js";
import type { Received } from "./inspected-origin.js";

const folder = fileURLToPath(new URL("../../aws-sdk/", import.meta.url));

/** Why the AWS SDK can't be used; undefined if it can. */
export const whyNoAwsSdk: string | undefined = existsSync(`${folder}node_modules/@aws-sdk/client-s3`)
  ? undefined
  : "it is not installed: npm ci --prefix tests/aws-sdk";

/** A client of the AWS SDK, as far as tests use it. */
export interface AwsClient {
  send(command: object): Promise<Record<string, unknown>>;
  destroy(): void;
}

/** What a package of the AWS SDK exports: classes, all of them. */
// biome-ignore lint/suspicious/noExplicitAny: its types are there only where it is installed
type Exports = Record<string, new (...args: any[]) => any>;

/** Loads a package of the AWS SDK, which is not installed with the others. */
export function loadAws(name: string): Exports {
  return createRequire(`${folder}package.json`)(name) as Exports;
}

/** A request for the SDK's own signer. */
interface SignerInput {
  method: string;
  path: string;
  query: Record<string, string | string[]>;
  headers: Record<string, string>;
  body: Buffer;
}

/** Signs with the SDK's own signer, and gives the Authorization header. */
export async function signWithSdk(
  input: SignerInput,
  opts: { keys: AwsKeys; region: string; service: string; date: Date },
): Promise<string> {
  const Signer = loadAws("@smithy/signature-v4")["SignatureV4"];
  const Sha256 = loadAws("@aws-crypto/sha256-js")["Sha256"];
  if (!Signer || !Sha256) throw new Error("the AWS SDK has no signer");
  const { keys, region, service, date } = opts;
  const signer = new Signer({
    ...{ credentials: keys, region, service, sha256: Sha256 },
    ...{ applyChecksum: false, uriEscapePath: service !== "s3" },
  }) as { sign(request: object, opts: object): Promise<{ headers: Record<string, string> }> };
  const request = { protocol: "https:", hostname: input.headers["host"], ...input };
  const signed = await signer.sign(request, {
    signingDate: date,
    signableHeaders: new Set([...Object.keys(input.headers), "x-amz-security-token"]),
  });
  return signed.headers["authorization"] ?? "";
}

/** Whether a server that has these keys would accept the signature of a request. The signature is computed by the SDK's signer. */
export async function isSignedBy(received: Received, keys: AwsKeys): Promise<boolean> {
  const headers = new Map(received.headers.map(([name, value]) => [name.toLowerCase(), value]));
  const authorization = headers.get("authorization") ?? "";
  const [, id, region = "", service = "", names = ""] =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/\d{8}\/([^/]+)\/([^/]+)\/aws4_request, SignedHeaders=([^,]+), Signature=/.exec(
      authorization,
    ) ?? [];
  if (id !== keys.accessKeyId || headers.get("x-amz-security-token") !== keys.sessionToken) return false;
  const { pathname, search } = splitUrl(received.url);
  const query: Record<string, string[]> = {};
  for (const [name, value] of new URLSearchParams(search)) query[name] = [...(query[name] ?? []), value];
  const signed = Object.fromEntries(names.split(";").map((name) => [name, headers.get(name) ?? ""]));
  const hash = headers.get("x-amz-content-sha256");
  if (hash !== undefined) signed["x-amz-content-sha256"] ??= hash;
  const input = { method: received.method, path: pathname, query, headers: signed, body: received.body };
  const date = toDate(headers.get("x-amz-date") ?? "");
  return (await signWithSdk(input, { keys, region, service, date })) === authorization;
}

/** The time that an x-amz-date header has. */
export function toDate(text: string): Date {
  return new Date(text.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, "$1-$2-$3T$4:$5:$6Z"));
}

function splitUrl(url: string): { pathname: string; search: string } {
  const at = url.indexOf("?");
  return at === -1 ? { pathname: url, search: "" } : { pathname: url.slice(0, at), search: url.slice(at + 1) };
}

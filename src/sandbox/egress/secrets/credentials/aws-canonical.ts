import { createHash, createHmac } from "node:crypto";

/** The part of a request that an AWS signature covers. Text has one character per byte, as it was received. */
export interface SignedRequest {
  method: string;
  /** The path as it is sent, without the query. */
  path: string;
  /** Without the question mark. */
  query: string;
  /** Of the signed headers: lower-case names, each once, in order. */
  headers: readonly (readonly [name: string, value: string])[];
  /** What stands for the body: its SHA-256 in hex, or the word of an unsigned one. */
  payload: string;
}

/** What a signature is bound to. */
export interface SignatureScope {
  /** As `20150830T123600Z`. */
  time: string;
  region: string;
  service: string;
}

/** S3 and its relatives sign the path as it is sent; all other services encode it once more. */
const PATH_AS_SENT = /^s3(?:-object-lambda|-outposts|express)?$/;

/** The AWS signature (version 4) of a request, in hex. */
export function signatureOf(request: SignedRequest, scope: SignatureScope, secret: string): string {
  const { time, region, service } = scope;
  const text = ["AWS4-HMAC-SHA256", time, scopeText(scope), sha256(canonicalRequest(request, service))].join("\n");
  const key = [time.slice(0, 8), region, service, "aws4_request"].reduce<Buffer>(hmac, Buffer.from(`AWS4${secret}`));
  return hmac(key, text).toString("hex");
}

/** A scope as it is written behind the id of an access key. */
export function scopeText({ time, region, service }: SignatureScope): string {
  return `${time.slice(0, 8)}/${region}/${service}/aws4_request`;
}

/** SHA-256 in hex. */
export function sha256(content: string | Buffer): string {
  return createHash("sha256").update(toBytes(content)).digest("hex");
}

/** The text of a request that is hashed and signed. */
export function canonicalRequest({ method, path, query, headers, payload }: SignedRequest, service: string): string {
  return [
    method,
    PATH_AS_SENT.test(service) ? path : encodeBytes(withoutDots(path)).replaceAll("%2F", "/"),
    canonicalQuery(query),
    ...headers.map(([name, value]) => `${name}:${value}`),
    "",
    headers.map(([name]) => name).join(";"),
    payload,
  ].join("\n");
}

function canonicalQuery(query: string): string {
  const parameters = query.split("&").flatMap((parameter) => {
    if (parameter === "") return [];
    const [, name = "", value = ""] = /^([^=]*)=?(.*)$/s.exec(parameter) ?? [];
    return [[encodeBytes(decodeBytes(name)), encodeBytes(decodeBytes(value))] as const];
  });
  const before = (one: string, other: string): number => Number(one > other) - Number(one < other);
  return parameters
    .sort((one, other) => before(one[0], other[0]) || before(one[1], other[1]))
    .map(([name, value]) => `${name}=${value}`)
    .join("&");
}

function withoutDots(path: string): string {
  const kept: string[] = [];
  for (const part of path.split("/")) {
    if (part === "..") kept.pop();
    else if (part !== "" && part !== ".") kept.push(part);
  }
  return `/${kept.join("/")}${kept.length > 0 && path.endsWith("/") ? "/" : ""}`;
}

function decodeBytes(text: string): string {
  return text.replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}

function encodeBytes(text: string): string {
  return text.replace(
    /[^A-Za-z0-9._~-]/g,
    (byte) => `%${byte.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`,
  );
}

function hmac(key: Buffer, text: string): Buffer {
  return createHmac("sha256", key).update(toBytes(text)).digest();
}

function toBytes(content: string | Buffer): Buffer {
  return typeof content === "string" ? Buffer.from(content, "latin1") : content;
}

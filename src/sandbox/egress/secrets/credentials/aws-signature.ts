import { Refusal } from "../../refusal.js";
import { type SignatureScope, scopeText, sha256, signatureOf } from "./aws-canonical.js";

type Header = readonly [name: string, value: string];

/** The keys of an AWS account. */
export interface AwsKeys {
  accessKeyId: string;
  secretAccessKey: string;
  /** Of keys that expire. */
  sessionToken?: string | undefined;
}

/** A request to a host of AWS, as it will be sent. */
export interface AwsRequest {
  method: string;
  /** With the query. */
  path: string;
  /** With a Content-Length, if it will have one. */
  headers: readonly Header[];
  /** Reads the body, for services that sign one without sending its hash. */
  body(): Promise<Buffer>;
}

/** Services accept a time that is off by this much. */
const MAX_SKEW = 5 * 60_000;
const AUTHORIZATION = /^AWS4-HMAC-SHA256\s+(.*)$/;
const CREDENTIAL = /^([^/]+)\/(\d{8})\/([A-Za-z0-9_-]+)\/([A-Za-z0-9_.-]+)\/aws4_request$/;
/** A body without a signature of its own. With a trailer, the trailer has none either. */
const UNSIGNED = ["UNSIGNED-PAYLOAD", "STREAMING-UNSIGNED-PAYLOAD-TRAILER"];
const TOKEN = "x-amz-security-token";

/**
 * The headers of a request that a program signed with a placeholder's keys, signed anew; undefined if it names no placeholder. What can't be signed anew is a `Refusal`
 * that says why. `now` is in milliseconds since 1970.
 */
export async function signAnew(
  request: AwsRequest,
  placeholderId: string,
  keysOf: () => Promise<AwsKeys>,
  now: number,
): Promise<Header[] | undefined> {
  const [path = "", query = ""] = splitOnce(request.path, "?");
  if (namesInQuery(query, placeholderId)) throw refuse("a presigned URL (X-Amz-Signature in the query)");
  const given = request.headers.filter(([name, value]) => is(name, "authorization") && value.includes(placeholderId));
  if (given.length === 0) return undefined;
  if (request.headers.filter(([name]) => is(name, "authorization")).length > 1)
    throw refuse("two Authorization headers");
  const { scope, names } = parseAuthorization(given[0]?.[1] ?? "", placeholderId);
  const payload = await payloadOf(request);
  const dated = dateAnew(request.headers, names, scope, now);
  const keys = await keysOf();
  const headers = withToken(dated.headers, keys.sessionToken);
  const signed = signedHeaders(headers, signedNames(names, keys));
  const signature = signatureOf(
    { method: request.method, path, query, headers: signed, payload },
    dated.scope,
    keys.secretAccessKey,
  );
  const authorization = [
    `AWS4-HMAC-SHA256 Credential=${keys.accessKeyId}/${scopeText(dated.scope)}`,
    `SignedHeaders=${signed.map(([name]) => name).join(";")}`,
    `Signature=${signature}`,
  ].join(", ");
  return headers
    .filter(
      ([name]) => !is(name, "content-length") && !(is(name, "accept-encoding") && !names.includes("accept-encoding")),
    )
    .map(([name, value]) => [name, is(name, "authorization") ? authorization : value]);
}

function namesInQuery(query: string, placeholderId: string): boolean {
  return /(?:^|&)X-Amz-(?:Credential|Signature)=/i.test(query) && query.includes(placeholderId);
}

function parseAuthorization(
  value: string,
  placeholderId: string,
): { scope: Omit<SignatureScope, "time"> & { date: string }; names: string[] } {
  if (value.startsWith("AWS4-ECDSA-P256-SHA256")) throw refuse("SigV4A (AWS4-ECDSA-P256-SHA256, for several regions)");
  const list = AUTHORIZATION.exec(value)?.[1];
  if (list === undefined) throw refuse("an Authorization header other than AWS4-HMAC-SHA256");
  const fields = new Map(list.split(",").map((field) => splitOnce(field.trim(), "=") as [string, string]));
  const [, id, date = "", region = "", service = ""] = CREDENTIAL.exec(fields.get("Credential") ?? "") ?? [];
  const names = fields.get("SignedHeaders")?.split(";") ?? [];
  const isWhole =
    fields.size === 3 && fields.has("Signature") && names.every((name) => /^[!#$%&'*+.^_`|~0-9a-z-]+$/.test(name));
  if (id !== placeholderId || !isWhole) throw refuse("a malformed Authorization header");
  if (!names.includes("host")) throw refuse("a signature that does not cover the Host header");
  return { scope: { date, region, service }, names };
}

/** What the signature has in the place of the body. */
async function payloadOf({ headers, body }: AwsRequest): Promise<string> {
  const [given, ...more] = valuesOf(headers, "x-amz-content-sha256");
  if (more.length > 0) throw refuse("two x-amz-content-sha256 headers");
  if (given === undefined) return sha256(await body());
  if (UNSIGNED.includes(given) || /^[0-9a-f]{64}$/.test(given)) return given;
  if (given.startsWith("STREAMING-")) throw refuse(`a signature for each piece of the body (${given.slice(0, 60)})`);
  throw refuse("an x-amz-content-sha256 header that is no hash");
}

/** The time of the request: that of the program, or, if its clock is off, that of this machine. */
function dateAnew(
  headers: readonly Header[],
  names: readonly string[],
  { date, region, service }: { date: string; region: string; service: string },
  now: number,
): { headers: Header[]; scope: SignatureScope } {
  const [given, ...more] = valuesOf(headers, "x-amz-date");
  if (given === undefined || more.length > 0) throw refuse("no x-amz-date header, or several");
  const at = Date.parse(given.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, "$1-$2-$3T$4:$5:$6Z"));
  const isNear = Math.abs(now - at) <= MAX_SKEW && given.startsWith(date);
  if (isNear) return { headers: [...headers], scope: { time: given, region, service } };
  if (!names.includes("x-amz-date")) throw refuse("an x-amz-date header that is off and not signed");
  const time = new Date(now).toISOString().replace(/[-:]|\.\d{3}/g, "");
  return {
    headers: headers.map(([name, value]) => [name, is(name, "x-amz-date") ? time : value]),
    scope: { time, region, service },
  };
}

/** The token of the real keys, which the placeholder's do not have. */
function withToken(headers: readonly Header[], token: string | undefined): Header[] {
  const rest = headers.filter(([name]) => !is(name, TOKEN));
  return token === undefined ? rest : [...rest, ["X-Amz-Security-Token", token]];
}

function signedNames(names: readonly string[], { sessionToken }: AwsKeys): string[] {
  const rest = names.filter((name) => name !== TOKEN);
  return [...new Set(sessionToken === undefined ? rest : [...rest, TOKEN])].sort();
}

function signedHeaders(headers: readonly Header[], names: readonly string[]): Header[] {
  return names.map((name) => {
    const values = valuesOf(headers, name);
    if (values.length === 0)
      throw refuse(`a signature that covers the header ${name.slice(0, 60)}, which is not forwarded`);
    return [name, values.map((value) => value.trim().replace(/\s+/g, " ")).join(",")];
  });
}

function valuesOf(headers: readonly Header[], name: string): string[] {
  return headers.filter(([each]) => is(each, name)).map(([, value]) => value);
}

function is(name: string, lowerCase: string): boolean {
  return name.toLowerCase() === lowerCase;
}

function splitOnce(text: string, separator: string): string[] {
  const at = text.indexOf(separator);
  return at === -1 ? [text] : [text.slice(0, at), text.slice(at + separator.length)];
}

function refuse(what: string): Refusal {
  return new Refusal(403, `the AWS keys in this sandbox are placeholders, and the proxy can't sign this anew: ${what}`);
}

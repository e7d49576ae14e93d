import { secretForms } from "../../../util/secret-forms.js";

type Header = readonly [name: string, value: string];

/** How a value is written into a body of this type, so that it stays one value there. */
export function encoderFor(headers: readonly Header[]): (value: string) => string {
  const type = headers.find(([name]) => name.toLowerCase() === "content-type")?.[1].toLowerCase() ?? "";
  if (/^application\/x-www-form-urlencoded\b/.test(type)) return encodeURIComponent;
  if (/^[^;]*[/+]json\s*(?:;|$)/.test(type)) return (value) => JSON.stringify(value).slice(1, -1);
  return (value) => value;
}

/** Whether a body is compressed, so that nothing can be found in it. */
export function isCompressed(headers: readonly Header[]): boolean {
  const codings = headers.filter(([name]) => name.toLowerCase() === "content-encoding");
  return codings.some(([, value]) => value.split(",").some((word) => !/^\s*(?:identity)?\s*$/i.test(word)));
}

/** Whether a body consists of messages with their length before them, as those of gRPC. */
export function isFramed(headers: readonly Header[]): boolean {
  return headers.some(([name, value]) => name.toLowerCase() === "content-type" && /^application\/grpc\b/i.test(value));
}

/**
 * Replaces placeholders in the value of a header, also in the credentials of the Basic scheme, which are base64. Those come back as they are when
 * nothing in them is replaced.
 */
export function replaceInHeader(value: string, replace: (text: string) => string): string {
  const [, scheme, encoded] = /^(basic\s+)([A-Za-z0-9+/]+={0,2})\s*$/i.exec(value) ?? [];
  if (scheme === undefined || encoded === undefined) return replace(value);
  const decoded = Buffer.from(encoded, "base64").toString("latin1");
  const replaced = replace(decoded);
  return replaced === decoded ? replace(value) : scheme + Buffer.from(replaced, "latin1").toString("base64");
}

/** What an answer must not contain, and what takes its place: a value as it is, in JSON, in a URL and in base64. */
export function maskedForms(values: readonly string[], placeholder: string): { text: Buffer; label: Buffer }[] {
  const label = Buffer.from(placeholder);
  return values.flatMap(secretForms).map((form) => ({ text: Buffer.from(form), label }));
}

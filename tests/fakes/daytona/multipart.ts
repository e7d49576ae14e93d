/** One part of a multipart body. */
export interface Part {
  readonly name: string;
  readonly body: Buffer;
}

/** Takes a multipart body apart. */
export function readMultipart(contentType: string, body: Buffer): Part[] {
  const boundary = /boundary="?([^";]+)"?/.exec(contentType)?.[1];
  if (boundary === undefined) return [];
  const mark = Buffer.from(`\r\n--${boundary}`);
  const all = Buffer.concat([Buffer.from("\r\n"), body]);
  const parts: Part[] = [];
  for (let at = all.indexOf(mark); at >= 0; ) {
    const start = at + mark.length;
    const next = all.indexOf(mark, start);
    if (next < 0) break;
    const head = all.indexOf("\r\n\r\n", start);
    const name = /name="((?:[^"\\]|\\.)*)"/.exec(all.toString("utf8", start, head))?.[1] ?? "";
    parts.push({ name, body: all.subarray(head + 4, next) });
    at = next;
  }
  return parts;
}

/** Puts a multipart body together. */
export function writeMultipart(boundary: string, parts: readonly { head: string; body: Buffer }[]): Buffer {
  const pieces = parts.flatMap(({ head, body }) => [
    Buffer.from(`--${boundary}\r\n${head}\r\n\r\n`),
    body,
    Buffer.from("\r\n"),
  ]);
  return Buffer.concat([...pieces, Buffer.from(`--${boundary}--\r\n`)]);
}

import type { ClientStream } from "./client-stream.js";
import { Refusal } from "./refusal.js";

/** The head of a request, parsed strictly: nothing that two parsers could understand differently. */
export interface RequestHead {
  method: string;
  target: string;
  version: "1.0" | "1.1";
  /** Names as they were written, values without the spaces around them. */
  headers: readonly (readonly [name: string, value: string])[];
}

export const MAX_HEAD_BYTES: number = 64 << 10;
const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
const TARGET = "[\\x21-\\x7e\\x80-\\xff]+";
/** No method has more than 17 letters, and logs and questions show it. */
const METHOD_TOKEN = TOKEN.replace(/\+$/, "{1,32}");
const REQUEST_LINE = new RegExp(`^(${METHOD_TOKEN}) (${TARGET}) HTTP/(1\\.[01])$`);
const HEADER_LINE = new RegExp(`^(${TOKEN}):[ \\t]*(.*?)[ \\t]*$`);
const STRAY = /[^\t\x20-\x7e\x80-\xff]/;
const METHOD = new RegExp(`^${METHOD_TOKEN}$`);
const NAME = new RegExp(`^${TOKEN}$`);
const WHOLE_TARGET = new RegExp(`^${TARGET}$`);

/** Reads up to the end of a head; undefined when the program closes without sending anything. */
export async function readHead(client: ClientStream): Promise<RequestHead | undefined> {
  let held = Buffer.alloc(1024);
  let length = 0;
  for (;;) {
    const chunk = await client.read();
    if (chunk === undefined) {
      if (length === 0) return undefined;
      throw new Refusal(400, "the request ends within its head");
    }
    if (length + chunk.length > held.length) {
      const larger = Buffer.alloc(Math.max(held.length * 2, length + chunk.length));
      held.copy(larger, 0, 0, length);
      held = larger;
    }
    chunk.copy(held, length);
    const from = Math.max(0, length - 3);
    length += chunk.length;
    const end = held.subarray(0, length).indexOf("\r\n\r\n", from, "latin1");
    if (end > MAX_HEAD_BYTES || (end === -1 && length > MAX_HEAD_BYTES)) {
      throw new Refusal(431, `the head of the request has more than ${MAX_HEAD_BYTES} bytes`);
    }
    if (end !== -1) {
      client.unread(held.subarray(end + 4, length));
      return parseHead(held.toString("latin1", 0, end));
    }
  }
}

/** Parses a head without the empty line at its end, one character per byte; a `Refusal` for anything unusual. */
export function parseHead(text: string): RequestHead {
  const [first = "", ...lines] = text.split("\r\n");
  const request = REQUEST_LINE.exec(first);
  if (!request) throw new Refusal(400, "the request line is malformed");
  const headers = lines.map((line): readonly [string, string] => {
    const header = HEADER_LINE.exec(line);
    // A space at the start, a lone CR or LF, a space before the colon: parsers disagree about each of these.
    if (!header || STRAY.test(line)) throw new Refusal(400, "a header line is malformed");
    return [header[1] ?? "", header[2] ?? ""];
  });
  const [, method = "", target = "", version] = request;
  return { method, target, version: version as RequestHead["version"], headers };
}

/** Whether a method is one that a request line could have. */
export function isMethod(text: string): boolean {
  return METHOD.test(text);
}

/** Whether a target is one that a request line could have. */
export function isTarget(text: string): boolean {
  return WHOLE_TARGET.test(text);
}

/** Whether a header is one that could stand in a line, and would be read as this name and this value. */
export function isHeader(name: string, value: string): boolean {
  return NAME.test(name) && !STRAY.test(value) && value === value.replace(/^[ \t]+|[ \t]+$/g, "");
}

/** The values of all headers with this lower-case name. */
export function headerValues({ headers }: Pick<RequestHead, "headers">, name: string): string[] {
  return headers.filter(([each]) => each.toLowerCase() === name).map(([, value]) => value);
}

import type { Readable, Writable } from "node:stream";
import { StringDecoder } from "node:string_decoder";
import { MAX_MESSAGE } from "./limits.js";
import type { McpMessage, McpTransport } from "./transport.js";

const PARSE_ERROR = -32_700;
const INVALID_REQUEST = -32_600;

/**
 * Lines of JSON over two streams. What is no message is answered with an error and not passed on; a client that does not read is not read either.
 */
export class LineTransport implements McpTransport {
  onmessage?: (message: never) => void;
  onclose?: () => void;
  onerror?: (error: Error) => void;
  readonly #input: Readable;
  readonly #output: Writable;
  readonly #decoder = new StringDecoder("utf8");
  #pieces: string[] = [];
  #length = 0;
  #isTooLong = false;
  #isClosed = false;

  constructor(input: Readable, output: Writable) {
    this.#input = input;
    this.#output = output;
  }

  async start(): Promise<void> {
    this.#input.on("data", this.#read).once("end", this.#end).once("error", this.#end).once("close", this.#end);
    this.#output.once("error", this.#end).once("close", this.#end).on("drain", this.#resume);
  }

  send(message: McpMessage): Promise<void> {
    if (this.#isClosed) return Promise.resolve();
    return new Promise((resolve) => {
      if (!this.#output.write(`${JSON.stringify(message)}\n`, () => resolve())) this.#input.pause();
    });
  }

  async close(): Promise<void> {
    this.#end();
  }

  readonly #resume = (): void => void (this.#isClosed || this.#input.resume());

  readonly #end = (): void => {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#input.off("data", this.#read);
    this.#output.off("drain", this.#resume);
    // A client that goes away while it is written to is no failure.
    this.#output.on("error", () => undefined);
    this.#input.on("error", () => undefined).pause();
    this.onclose?.();
  };

  readonly #read = (chunk: Buffer): void => {
    const lines = this.#decoder.write(chunk).split("\n");
    const rest = lines.pop() ?? "";
    for (const line of lines) {
      this.#add(line);
      const [text, isTooLong] = [this.#pieces.join(""), this.#isTooLong];
      this.#pieces = [];
      this.#length = 0;
      this.#isTooLong = false;
      if (isTooLong) this.#refuse(INVALID_REQUEST, `The message has more than ${MAX_MESSAGE} bytes`);
      else if (text.trim() !== "") this.#take(text);
    }
    this.#add(rest);
  };

  #add(part: string): void {
    this.#length += part.length;
    if (this.#length > MAX_MESSAGE) {
      this.#isTooLong = true;
      this.#pieces = [];
    } else if (part !== "") this.#pieces.push(part);
  }

  #take(text: string): void {
    let message: unknown;
    try {
      message = JSON.parse(text);
    } catch {
      this.#refuse(PARSE_ERROR, "The message is not JSON");
      return;
    }
    if (isMessage(message)) this.onmessage?.(message as never);
    else this.#refuse(INVALID_REQUEST, "This is no message of JSON-RPC 2.0", idOf(message));
  }

  #refuse(code: number, message: string, id?: string | number): void {
    this.onerror?.(new Error(message));
    void this.send({ jsonrpc: "2.0", ...(id !== undefined && { id }), error: { code, message } });
  }
}

/** Whether it is a request, a notification or an answer. The protocol's own package says nothing to what is neither, and its client would wait. */
function isMessage(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const { jsonrpc, id, method } = value as Readonly<Record<string, unknown>>;
  if (jsonrpc !== "2.0") return false;
  // An error is never answered by another, whatever its number is.
  if (method === undefined && "error" in value) return true;
  if (id !== undefined && idOf(value) === undefined) return false;
  return method === undefined ? "result" in value : typeof method === "string";
}

/** The number of a message, by which its sender knows the answer. */
function idOf(message: unknown): string | number | undefined {
  const id = (message as { id?: unknown } | null)?.id;
  return typeof id === "string" || Number.isSafeInteger(id) ? (id as string | number) : undefined;
}

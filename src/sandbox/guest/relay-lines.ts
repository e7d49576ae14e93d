import { tampered } from "./frames.js";
import type { RelayDecoder } from "./relay-decoder.js";

/** The longest line of an honest relay. */
const MAX_LINE = 128 << 10;
const DATA = /^([0-9a-f]{1,13}) (?:([A-Za-z0-9+/]+={0,2})|@(\d{1,3}) (\d{1,7}))$/;

/** Parses the lines that a relay prints. */
export class RelayLines implements RelayDecoder<string> {
  position = 0;
  heard = 0;
  hasEnded = false;
  environment: Readonly<Record<string, string>> | undefined;
  #rest = "";

  restart(): void {
    this.#rest = "";
  }

  /** Some of the bytes are in a file. */
  async *push(text: string, fetch: (name: string) => Promise<Uint8Array>): AsyncGenerator<Uint8Array> {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop() ?? "";
    if (this.#rest.length > MAX_LINE) throw tampered("a line without an end");
    for (const line of lines) {
      this.heard += 1;
      if (line === "") continue;
      if (line === "!") this.hasEnded = true;
      else if (line.startsWith("~")) this.environment = parseEnvironment(line.slice(1));
      else yield await this.#data(line, fetch);
    }
  }

  async #data(line: string, fetch: (name: string) => Promise<Uint8Array>): Promise<Uint8Array> {
    const [, at = "", encoded, file, length] = DATA.exec(line) ?? [];
    const position = Number.parseInt(at, 16);
    if (line.length > MAX_LINE || Number.isNaN(position)) throw tampered("a line that cannot be read");
    // Something was lost or came twice: a new relay starts where this one should have.
    if (position !== this.position) throw new Error(`expected position ${this.position}, got ${position}`);
    const bytes = encoded === undefined ? await fetch(`out-${file}`) : Buffer.from(encoded, "base64");
    if (length !== undefined && bytes.length !== Number(length)) throw new Error(`out-${file} is not whole`);
    this.position += bytes.length;
    return bytes;
  }
}

function parseEnvironment(encoded: string): Record<string, string> {
  const environment: Record<string, string> = {};
  for (const line of Buffer.from(encoded, "base64").toString("utf8").split("\n")) {
    const at = line.indexOf("=");
    if (at > 0 && !line.includes("\0")) environment[line.slice(0, at)] = line.slice(at + 1);
  }
  return environment;
}

import type { Rewriting } from "../../forward.js";
import { Refusal } from "../../refusal.js";
import type { TokenVault } from "./token-vault.js";

type Header = readonly [name: string, value: string];

const MOST_SENT = 256 << 10;
const MOST_ANSWERED = 1 << 20;
const FORM = /^application\/x-www-form-urlencoded\b/i;
const JSON_TYPE = /^[^;]*[/+]json\s*(?:;|$)/i;

/** What changes in a request to a host of a login: placeholders in its headers become tokens. `onUsed` is called when one does. */
export function withTokens(
  vault: TokenVault,
  otherwise: Rewriting,
  opts: { replaceInHeader(value: string, replace: (text: string) => string): string; onUsed(): void },
): Rewriting {
  return {
    ...otherwise,
    async ofRequest(request, body) {
      const changed = await otherwise.ofRequest(request, body);
      const reveal = ([name, value]: Header): Header => {
        if (name.toLowerCase() === "host") return [name, value];
        const revealed = opts.replaceInHeader(value, (text) => vault.reveal(text));
        if (revealed !== value) opts.onUsed();
        return [name, revealed];
      };
      return { ...changed, headers: changed.headers.map(reveal) };
    },
  };
}

/**
 * What changes in a request to a token endpoint: placeholders in its body become tokens, and tokens in its answer become placeholders. Requests that use
 * the same refresh token take turns, because most servers end a login whose token comes twice. An answer that can't be read is a `Refusal`.
 */
export function exchangingTokens(vault: TokenVault, otherwise: Rewriting): Rewriting {
  let login: ReturnType<TokenVault["loginOf"]>;
  let endTurn: (() => void) | undefined;
  let isOver = false;
  return {
    ...otherwise,
    async ofRequest(request, body) {
      const changed = await otherwise.ofRequest(request, body);
      const fields = readFields(changed.headers, body && (await body.whole(MOST_SENT)));
      const headers: Header[] = [
        ...changed.headers.filter(([name]) => name.toLowerCase() !== "accept-encoding"),
        ["Accept-Encoding", "identity"],
      ];
      if (fields === undefined) return { ...changed, headers };
      login = fields.values.map((value) => vault.loginOf(value)).find((each) => each !== undefined);
      if (login !== undefined) endTurn = await vault.takeTurn(login);
      // The program may have left while it waited.
      if (isOver) endTurn?.();
      return { ...changed, headers, bytes: fields.write((value) => vault.reveal(value)) };
    },
    ofBody(headers) {
      const write = writerFor(headers);
      return async function* (pieces) {
        const concealed = Buffer.from(write(await readAll(pieces), (answer) => vault.conceal(answer, login)));
        // Only now: a new token may be in another field as well, where it is masked like every one that is known.
        const masked = otherwise.ofBody(headers);
        const once = (async function* () {
          yield concealed;
        })();
        yield* masked?.(once) ?? once;
      };
    },
    ended() {
      isOver = true;
      endTurn?.();
      otherwise.ended?.();
    },
  };
}

interface Fields {
  values: string[];
  write(replace: (value: string) => string): Buffer;
}

/** The fields of a body; undefined for one of another kind, which passes as it is. */
function readFields(headers: readonly Header[], body: Buffer | undefined): Fields | undefined {
  const type = headerOf(headers, "content-type") ?? "";
  if (body === undefined || headerOf(headers, "content-encoding") !== undefined) return undefined;
  if (FORM.test(type)) {
    const pairs = [...new URLSearchParams(body.toString("utf8"))];
    return {
      values: pairs.map(([, value]) => value),
      write: (replace) =>
        Buffer.from(
          new URLSearchParams(pairs.map(([name, value]): [string, string] => [name, replace(value)])).toString(),
        ),
    };
  }
  if (!JSON_TYPE.test(type)) return undefined;
  const found = parse(body.toString("utf8"));
  if (typeof found !== "object" || found === null) return undefined;
  const entries = Object.entries(found);
  return {
    values: entries.flatMap(([, value]) => (typeof value === "string" ? [value] : [])),
    write: (replace) =>
      Buffer.from(
        JSON.stringify(
          Object.fromEntries(
            entries.map(([name, value]) => [name, typeof value === "string" ? replace(value) : value]),
          ),
        ),
      ),
  };
}

type Write = (text: string, conceal: (answer: unknown) => unknown) => string;

function writerFor(headers: readonly Header[]): Write {
  const type = headerOf(headers, "content-type") ?? "";
  const coding = headerOf(headers, "content-encoding") ?? "identity";
  const refuse = (why: string): Refusal =>
    new Refusal(502, `the token endpoint's answer can't be searched for tokens: ${why}`);
  if (coding.toLowerCase() !== "identity") throw refuse("it is compressed");
  const length = Number(headerOf(headers, "content-length") ?? 0);
  if (length > MOST_ANSWERED) throw refuse(`it has more than ${MOST_ANSWERED} bytes`);
  if (FORM.test(type)) {
    return (text, conceal) =>
      new URLSearchParams(conceal(Object.fromEntries(new URLSearchParams(text))) as Record<string, string>).toString();
  }
  if (!JSON_TYPE.test(type) && headerOf(headers, "content-length") !== "0")
    throw refuse("it is neither JSON nor a form");
  return (text, conceal) => {
    if (text === "") return "";
    const found = parse(text);
    if (found === undefined) throw new Error("the token endpoint's answer is not the JSON that it says");
    return JSON.stringify(conceal(found));
  };
}

async function readAll(pieces: AsyncIterable<Buffer>): Promise<string> {
  const all: Buffer[] = [];
  let length = 0;
  for await (const piece of pieces) {
    length += piece.length;
    // The head was sent: the connection is cut.
    if (length > MOST_ANSWERED) throw new Error("the token endpoint sent too much");
    all.push(piece);
  }
  return Buffer.concat(all).toString("utf8");
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function headerOf(headers: readonly Header[], wanted: string): string | undefined {
  return headers.find(([name]) => name.toLowerCase() === wanted)?.[1];
}

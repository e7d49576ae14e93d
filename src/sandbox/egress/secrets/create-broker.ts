import { createByteReplacer, type PreparedBytes, prepareBytes } from "../../../util/redact.js";
import type { Rewriting } from "../forward.js";
import { Refusal } from "../refusal.js";
import type { SecretBroker } from "../secret-broker.js";
import { isFor } from "../secret-rules.js";
import { encoderFor, isCompressed, isFramed, replaceInHeader } from "./encodings.js";
import { KnownMasks, type MaskSet, together } from "./known-masks.js";
import type { LiveSecret } from "./live-secret.js";
import type { LoginSecret } from "./login-secret.js";
import { rewriteFrames } from "./websocket-frames.js";

type Header = readonly [name: string, value: string];
type Valued = readonly [secret: LiveSecret, value: string];

/**
 * Headers of a request that are left out, so that values can be found in its answer: parts of it could contain parts of one. Every server may answer
 * as if they were not there.
 */
const LEFT_OUT = /^(?:range|if-range|accept-encoding|grpc-accept-encoding|sec-websocket-extensions)$/i;
const UNCOMPRESSED: Header = ["Accept-Encoding", "identity"];

/** Makes the broker of an open sandbox. */
export function createBroker(secrets: readonly LiveSecret[], logins: readonly LoginSecret[] = []): SecretBroker {
  const hosts = new Set([...secrets, ...logins].flatMap((secret) => secret.hosts.map(nameOf)));
  const isOwn = (secret: LiveSecret | LoginSecret, host: string, port: number): boolean =>
    secret.hosts.some((entry) => isFor(entry, host, port));
  const known = new KnownMasks();
  const masks = (): MaskSet =>
    known.of([
      ...secrets.flatMap(({ values, placeholder }) => values.map((value) => [value, placeholder] as const)),
      ...logins.flatMap((login) => login.tokens),
    ]);
  return {
    hosts: [...hosts],
    changesOf(host, port, method, useSecret = () => undefined) {
      const own = secrets.filter((secret) => isOwn(secret, host, port));
      const ownLogins = logins.filter((login) => isOwn(login, host, port));
      if (own.length + ownLogins.length === 0) return undefined;
      const sent = own.filter(({ signer }) => signer === undefined);
      const replaced = createRewriting(sent, masks, useSecret);
      const loggedIn = ownLogins.reduce(
        (changes, login) => login.changesOf({ host, port, method }, changes, () => useSecret(login.name)),
        replaced,
      );
      return own.reduce(
        (changes, { name, signer }) => signer?.changesOf(method, changes, () => useSecret(name)) ?? changes,
        loggedIn,
      );
    },
  };
}

function nameOf({ host, isWildcard }: LiveSecret["hosts"][number]): string {
  return isWildcard ? `*${host}` : host;
}

/** `own`: those that belong to the host. `masks`: what is taken out of its answers, of all secrets. */
function createRewriting(
  own: readonly LiveSecret[],
  masks: () => MaskSet,
  useSecret: (name: string) => void,
): Rewriting {
  let sent: MaskSet | undefined;
  return {
    async ofRequest({ path, headers }) {
      const used = own.filter((secret) => isUsed(secret, path, headers));
      const valued = await Promise.all(used.map(async (secret) => [secret, await fetchValue(secret)] as const));
      for (const { name } of used) useSecret(name);
      sent = masks();
      const inBody = valued.filter(([{ place }]) => place === "body");
      const kept = headers.filter(([name]) => !LEFT_OUT.test(name));
      const changed = {
        path: replaceInPath(path, valued),
        headers: [...kept.map(([name, value]) => replaceInOne(name, value, valued)), UNCOMPRESSED],
      };
      if (inBody.length === 0 || isCompressed(headers)) return changed;
      const encode = encoderFor(headers);
      const wanted = prepareBytes(
        inBody.map(([{ placeholder }, value]) => ({
          text: Buffer.from(placeholder),
          label: Buffer.from(encode(value)),
        })),
      );
      return { ...changed, body: (pieces) => replaceIn(pieces, wanted) };
    },
    ofHeaders(headers) {
      const { any } = together(sent, masks());
      const mask = (text: string): string => {
        const replacer = createByteReplacer(any);
        const found = Buffer.concat([replacer.write(Buffer.from(text, "latin1")), replacer.end()]);
        return found.toString("latin1");
      };
      return headers.map(([name, value]) => [mask(name), mask(value)]);
    },
    ofBody(headers) {
      // A program may get a host to say that an answer is compressed which isn't. In one that is, nothing is found.
      const hasLengths = isFramed(headers) || isCompressed(headers);
      const all = together(sent, masks());
      const wanted = hasLengths ? all.framed : all.any;
      return (pieces) => replaceIn(pieces, wanted);
    },
    // Frames have their lengths before them. None is compressed: that was not offered.
    ofFrames: () => {
      const { framed } = together(sent, masks());
      return (pieces) => rewriteFrames(pieces, createByteReplacer(framed));
    },
  };
}

/** Whether a request may contain the placeholder of a secret in its place. Only a body has to be read for that. */
function isUsed(secret: LiveSecret, path: string, headers: readonly Header[]): boolean {
  const marked = [[secret, ""]] as const;
  if (secret.place === "query") return replaceInPath(path, marked) !== path;
  return secret.place === "body" || headers.some(([name, value]) => replaceInOne(name, value, marked)[1] !== value);
}

/** A value that can't be had ends the request, never the sandbox. */
async function fetchValue(secret: LiveSecret): Promise<string> {
  try {
    return await secret.value();
  } catch {
    throw new Refusal(502, `the value of secret ${secret.name} can't be had`);
  }
}

function replaceInOne(name: string, value: string, valued: readonly Valued[]): Header {
  const lower = name.toLowerCase();
  const here = valued.filter(([{ place, header = lower }]) => place === "header" && header === lower);
  if (lower === "host" || here.length === 0) return [name, value];
  return [name, replaceInHeader(value, (text) => replaceAll(text, here))];
}

function replaceInPath(path: string, valued: readonly Valued[]): string {
  const start = path.indexOf("?");
  if (start === -1) return path;
  const here = valued.filter(([{ place }]) => place === "query");
  return path.slice(0, start) + replaceAll(path.slice(start), here, encodeURIComponent);
}

function replaceAll(text: string, valued: readonly Valued[], encode = (value: string): string => value): string {
  return valued.reduce((all, [{ placeholder }, value]) => all.replaceAll(placeholder, () => encode(value)), text);
}

async function* replaceIn(pieces: AsyncIterable<Buffer>, wanted: PreparedBytes): AsyncGenerator<Buffer> {
  const replacer = createByteReplacer(wanted);
  for await (const piece of pieces) {
    const ready = replacer.write(piece);
    // An empty chunk would be the end of the body.
    if (ready.length > 0) yield ready;
  }
  const rest = replacer.end();
  if (rest.length > 0) yield rest;
}

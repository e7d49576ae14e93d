import { SandboxError } from "../../../../contracts/errors.js";

/** A server that may get a token: the URL for git, and the origin that the token is for. */
export interface RemoteTarget {
  readonly url: string;
  /** Scheme, host and port, as git writes them when it asks for a password. */
  readonly origin: string;
  readonly protocol: "https" | "http";
}

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;
const GITHUB_SSH = /^(?:ssh:\/\/)?git@github\.com[:/]([A-Za-z0-9][\w.-]*\/[\w.-]+?)(?:\.git)?\/?$/;

/** Parses the URL of a remote that may get a token: https, http on this machine, or GitHub's SSH form, which stands for https. */
export function parsePushUrl(text: string): RemoteTarget {
  return parseHttpUrl(toHttps(text) ?? text, (why) => refused(text, why));
}

/** The https form of a GitHub repository's SSH form; undefined for any other text. */
export function toHttps(text: string): string | undefined {
  const github = GITHUB_SSH.exec(text)?.[1];
  return github === undefined ? undefined : `https://github.com/${github}.git`;
}

/** Parses an http or https URL; throws what `refuse` makes of the reason against it. */
export function parseHttpUrl(text: string, refuse: (why: string) => SandboxError): RemoteTarget {
  if (!/^https?:\/\/[\x21-\x7e]+$/i.test(text) || !URL.canParse(text)) throw refuse("only https is pushed to");
  const url = new URL(text);
  if (url.username !== "" || url.password !== "") throw refuse("it holds a user name or password");
  if (url.search !== "" || url.hash !== "") throw refuse("it has a query or a fragment");
  const protocol = url.protocol === "https:" ? "https" : "http";
  if (protocol === "http" && !LOOPBACK.test(url.hostname)) throw refuse("a token is not sent without TLS");
  if (!/^[A-Za-z0-9.:[\]-]+$/.test(url.host) || url.pathname === "/") throw refuse("it names no repository");
  const origin = `${protocol}://${url.host}`;
  return { url: `${origin}${url.pathname}`, origin, protocol };
}

/** Refuses a remote that is not on the server that the token is for. */
export function assertServer(url: string, server: string | undefined): void {
  if (server === undefined || (URL.canParse(server) && new URL(url).origin === new URL(server).origin)) return;
  throw new SandboxError(
    "permission_denied",
    `The remote ${shownUrl(url)} is not on ${server}, which the token is for`,
    {
      hint: "nothing was sent; if you trust that server, give a token of its own",
    },
  );
}

/** A URL that is safe to show: short, and without a password. */
export function shownUrl(text: string): string {
  return text.slice(0, 200).replace(/\/\/[^/]*@/, "//***@");
}

function refused(text: string, why: string): SandboxError {
  return new SandboxError("invalid_argument", `Invalid remote URL ${JSON.stringify(shownUrl(text))} — ${why}`, {
    hint: "git remote set-url origin https://<host>/<repository>.git",
  });
}

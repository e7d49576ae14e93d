import { SandboxError } from "../errors.js";

/** Where a push goes: everything that git is told, and what the answers to its questions are bound to. */
export interface PushTarget {
  readonly url: string;
  /** Scheme and host with its port, as git names them when it asks for a password. */
  readonly origin: string;
  readonly protocol: "https" | "http";
}

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;
const GITHUB_SSH = /^(?:ssh:\/\/)?git@github\.com[:/]([A-Za-z0-9][\w.-]*\/[\w.-]+?)(?:\.git)?\/?$/;

/**
 * Reads the URL of a remote that a token may be sent to: https, or http to this very machine. The SSH form of a repository
 * on GitHub stands for its https one. Anything else is `invalid_argument`.
 */
export function parsePushUrl(text: string): PushTarget {
  const github = GITHUB_SSH.exec(text)?.[1];
  if (github !== undefined) return parsePushUrl(`https://github.com/${github}.git`);
  if (!/^https?:\/\/[\x21-\x7e]+$/i.test(text) || !URL.canParse(text)) throw refused(text, "only https is pushed to");
  const url = new URL(text);
  if (url.username !== "" || url.password !== "") throw refused(text, "it holds a user name or password");
  if (url.search !== "" || url.hash !== "") throw refused(text, "it has a query or a fragment");
  const protocol = url.protocol === "https:" ? "https" : "http";
  if (protocol === "http" && !LOOPBACK.test(url.hostname)) throw refused(text, "a token is not sent without TLS");
  if (!/^[A-Za-z0-9.:[\]-]+$/.test(url.host) || url.pathname === "/") throw refused(text, "it names no repository");
  const origin = `${protocol}://${url.host}`;
  return { url: `${origin}${url.pathname}`, origin, protocol };
}

function refused(text: string, why: string): SandboxError {
  const shown = text.slice(0, 200).replace(/\/\/[^/]*@/, "//***@");
  return new SandboxError("invalid_argument", `Invalid remote URL ${JSON.stringify(shown)} — ${why}`, {
    hint: "git remote set-url origin https://<host>/<repository>.git",
  });
}

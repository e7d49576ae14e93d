import { existsSync } from "node:fs";
import { posix, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { SandboxError } from "../../../../contracts/errors.js";
import { parseGitHubRepo } from "../../../util/git/github.js";
import { parseHttpUrl, type RemoteTarget, shownUrl, toHttps } from "../remote.js";

/** A source on another machine. */
export interface SourceUrl {
  /** In its full form: identifies the source, and is where a push goes. */
  readonly url: string;
  readonly protocol: "https" | "http" | "ssh" | "file";
  /** The server that may get a token. Absent: none may. */
  readonly target?: RemoteTarget;
}

const SCHEME = /^[a-z][a-z0-9+.-]*:\/\//i;
const SCP = /^[A-Za-z0-9_][\w.-]*@[A-Za-z0-9][A-Za-z0-9.-]*:(?!-)[^\s:][^\s]*$/;
const SSH =
  /^ssh:\/\/(?:[A-Za-z0-9_][\w.-]*@)?(?:[A-Za-z0-9][A-Za-z0-9.-]*|\[[0-9a-f:]+\])(?::\d{1,5})?\/(?!-)[^\s]+$/i;

/** Parses the option `repo` as a URL; undefined for a path. `owner/name` means GitHub unless such a directory exists. */
export function parseSourceUrl(repo: string, opts: { hasToken?: boolean } = {}): SourceUrl | undefined {
  const short = shortForm(repo);
  if (short !== undefined) return ofHttp(short, repo);
  if (/^[^/]*@[^/]*:/.test(repo) && !SCHEME.test(repo)) {
    if (!SCP.test(repo)) throw refused(repo, "it is no address of a repository");
    return ofSsh(repo, opts.hasToken === true);
  }
  if (!SCHEME.test(repo)) return undefined;
  if (/^https?:/i.test(repo)) return ofHttp(repo, repo);
  if (/^file:/i.test(repo)) return ofFile(repo);
  if (!/^ssh:/i.test(repo))
    throw refused(repo, "only https, ssh and file are cloned from, and http from this very machine");
  if (!SSH.test(repo)) throw refused(repo, "it is no address of a repository, or holds a password");
  return ofSsh(repo, opts.hasToken === true);
}

function shortForm(repo: string): string | undefined {
  if (!/^[A-Za-z0-9][^/:@]*\/[^/:@]+$/.test(repo) || existsSync(resolve(repo))) return undefined;
  try {
    const { owner, name } = parseGitHubRepo(repo);
    return `https://github.com/${owner}/${name}.git`;
  } catch {
    return undefined;
  }
}

function ofHttp(text: string, repo: string): SourceUrl {
  const target = parseHttpUrl(text, (why) => refused(repo, why));
  return { url: target.url, protocol: target.protocol, target };
}

/** With a token, GitHub is reached by https, which needs no key. */
function ofSsh(text: string, hasToken: boolean): SourceUrl {
  const https = hasToken ? toHttps(text) : undefined;
  return https === undefined ? { url: text, protocol: "ssh" } : ofHttp(https, text);
}

function ofFile(text: string): SourceUrl {
  let path: string;
  try {
    path = fileURLToPath(text);
  } catch {
    throw refused(text, "it names no file of this machine");
  }
  return { url: `file://${posix.normalize(path)}`, protocol: "file" };
}

function refused(text: string, why: string): SandboxError {
  return new SandboxError("invalid_argument", `Invalid repo ${JSON.stringify(shownUrl(text))} — ${why}`, {
    hint: "https://<host>/<repository>.git, or the path of a clone",
  });
}

import { SandboxError } from "../../../contracts/errors.js";
import { type GitHubRepo, parseGitHubRepo } from "../../util/git/github.js";

/** Where GitHub is: github.com, an Enterprise server, or a server of a test. */
export interface GitHubHost {
  /** For example `https://github.com`; never a slash at its end. */
  readonly serverUrl: string;
  /** For example `https://api.github.com`. */
  readonly apiUrl: string;
}

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;

/** Reads GITHUB_SERVER_URL and GITHUB_API_URL, the names that GitHub Actions sets. */
export function gitHubHost(env: Readonly<Record<string, string | undefined>>): GitHubHost {
  const serverUrl = checkedUrl("GITHUB_SERVER_URL", env["GITHUB_SERVER_URL"] || "https://github.com");
  const usual = serverUrl === "https://github.com" ? "https://api.github.com" : `${serverUrl}/api/v3`;
  return { serverUrl, apiUrl: checkedUrl("GITHUB_API_URL", env["GITHUB_API_URL"] || usual) };
}

/** The repository that a reference or the URL of a remote names on this host; undefined when it is somewhere else. */
export function repositoryAt({ serverUrl }: GitHubHost, reference: string): GitHubRepo | undefined {
  const host = new URL(serverUrl).host;
  const ssh = /^(?:ssh:\/\/)?git@([^:/]+)[:/]([^:]+)$/.exec(reference);
  const path = ssh?.[1] === host ? ssh[2] : pathBelow(serverUrl, reference);
  if (path === undefined && reference.includes(":")) return undefined;
  try {
    return parseGitHubRepo((path ?? reference).replace(/\/$/, ""));
  } catch {
    return undefined;
  }
}

function pathBelow(serverUrl: string, reference: string): string | undefined {
  const prefix = `${serverUrl}/`;
  return reference.toLowerCase().startsWith(prefix.toLowerCase()) ? reference.slice(prefix.length) : undefined;
}

function checkedUrl(name: string, text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isSafe = url?.protocol === "https:" || (url?.protocol === "http:" && LOOPBACK.test(url.hostname));
  if (url === undefined || !isSafe || url.username !== "" || url.search !== "" || url.hash !== "") {
    const shown = JSON.stringify(text.replace(/\/\/[^/]*@/, "//***@").slice(0, 200));
    throw new SandboxError("invalid_argument", `Invalid ${name} ${shown} — a token is sent to https only`, {
      hint: `for example ${name}=https://github.example.org`,
    });
  }
  return `${url.origin}${url.pathname}`.replace(/\/+$/, "");
}

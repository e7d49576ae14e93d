import { existsSync } from "node:fs";

/** Variables that may have a token; the first that is set counts. Never an argument: every user of the machine can read those. */
export const TOKENS = ["GLOVEBOX_TOKEN", "GITHUB_TOKEN", "GH_TOKEN"] as const;

/** A token, and the only server that may see it; without `server` it goes to the one the user names. */
export interface RemoteToken {
  readonly token: string;
  readonly server?: string;
}

/**
 * Finds the token for remotes in the environment. A GitHub token goes only to GitHub, whatever remote a repository
 * names.
 */
export function findToken(env: Readonly<Record<string, string | undefined>>): RemoteToken | undefined {
  const name = TOKENS.find((each) => env[each]);
  const token = name === undefined ? undefined : env[name];
  if (token === undefined) return undefined;
  return name === "GLOVEBOX_TOKEN" ? { token } : { token, server: env["GITHUB_SERVER_URL"] || "https://github.com" };
}

/** The token for a repository of a command line. One on this machine gets it too: where it pushes to is checked then. */
export function tokenFor(
  repo: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
): { githubToken?: string } {
  const found = repo === undefined ? undefined : findToken(env);
  if (found === undefined || repo === undefined) return {};
  return existsSync(repo) || isFor(found, repo) ? { githubToken: found.token } : {};
}

/** Whether a remote repository that the user names is on the token's server. */
function isFor({ server }: RemoteToken, repo: string): boolean {
  if (server === undefined || !repo.includes(":")) return true;
  const host = URL.canParse(server) ? new URL(server).host : "";
  if (/^https?:/i.test(repo)) return URL.canParse(repo) && new URL(repo).host === host;
  return repo.startsWith(`git@${host}:`) || repo.startsWith(`ssh://git@${host}/`);
}

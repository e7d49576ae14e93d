/** Variables that may have a token. Never an argument: every user of the machine can read those. */
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

/** Whether a remote repository that the user names is on the token's server. */
export function isFor({ server }: RemoteToken, repo: string): boolean {
  if (server === undefined || !repo.includes(":")) return true;
  const host = URL.canParse(server) ? new URL(server).host : "";
  if (/^https?:/i.test(repo)) return URL.canParse(repo) && new URL(repo).host === host;
  return repo.startsWith(`git@${host}:`) || repo.startsWith(`ssh://git@${host}/`);
}

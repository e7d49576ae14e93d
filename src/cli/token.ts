/** Where a token is looked for. Never in the arguments: those can be read by every user of the machine. */
export const TOKENS = ["GLOVEBOX_TOKEN", "GITHUB_TOKEN", "GH_TOKEN"] as const;

/** A token of the environment, and the only server that may see it; absent: the one that the user names. */
export interface RemoteToken {
  readonly token: string;
  readonly server?: string;
}

/**
 * The token that the environment has for remotes; undefined when there is none. One for GitHub goes to GitHub alone, wherever a repository says
 * that its remote is.
 */
export function findToken(env: Readonly<Record<string, string | undefined>>): RemoteToken | undefined {
  const name = TOKENS.find((each) => env[each]);
  const token = name === undefined ? undefined : env[name];
  if (token === undefined) return undefined;
  return name === "GLOVEBOX_TOKEN" ? { token } : { token, server: env["GITHUB_SERVER_URL"] || "https://github.com" };
}

/** Whether a repository that the user names elsewhere is on the server of a token. */
export function isFor({ server }: RemoteToken, repo: string): boolean {
  if (server === undefined || !repo.includes(":")) return true;
  const host = URL.canParse(server) ? new URL(server).host : "";
  if (/^https?:/i.test(repo)) return URL.canParse(repo) && new URL(repo).host === host;
  return repo.startsWith(`git@${host}:`) || repo.startsWith(`ssh://git@${host}/`);
}

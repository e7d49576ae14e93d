/** Where a token is looked for. Never in the arguments: those can be read by every user of the machine. */
export const TOKENS = ["GLOVEBOX_TOKEN", "GITHUB_TOKEN", "GH_TOKEN"] as const;

/** The token that the environment has for remotes; undefined when there is none. */
export function findToken(env: Readonly<Record<string, string | undefined>>): string | undefined {
  const name = TOKENS.find((each) => env[each]);
  return name === undefined ? undefined : env[name];
}

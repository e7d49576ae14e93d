import type { LiveSecret } from "./live-secret.js";

/** The variables by which git in a sandbox answers the hosts of secrets with their placeholders, so that it asks nobody. */
export function gitEnv(secrets: readonly Pick<LiveSecret, "name" | "gitUser" | "hosts">[]): Record<string, string> {
  const settings = secrets.flatMap(({ name, gitUser, hosts }) =>
    gitUser === undefined
      ? []
      : hosts.map(({ host, port, isWildcard }) => {
          const authority = `${isWildcard ? "*" : ""}${host}${port === 443 ? "" : `:${port}`}`;
          return [`credential.https://${authority}.helper`, helper(gitUser, name)] as const;
        }),
  );
  if (settings.length === 0) return {};
  const numbered = settings.flatMap(([key, value], at) => [
    [`GIT_CONFIG_KEY_${at}`, key],
    [`GIT_CONFIG_VALUE_${at}`, value],
  ]);
  return { GIT_CONFIG_COUNT: `${settings.length}`, ...Object.fromEntries(numbered) };
}

/** Git runs it in a shell. Both names were checked: they have no character that a shell would read. */
function helper(user: string, variable: string): string {
  return `!f() { test "$1" = get && printf 'username=%s\\npassword=%s\\n' '${user}' "$${variable}"; }; f`;
}

import type { AgentAccess, AgentSetting } from "../types.js";

/** Names the account of a ChatGPT subscription; it is no secret. A node that has it works with that subscription. */
export const CHATGPT = "CODEX_CHATGPT_ACCOUNT";
const TOKEN = "CODEX_CHATGPT_TOKEN";

/** Whether Codex works with a ChatGPT subscription whose login is not copied in. */
export function isChatGpt(env: AgentSetting["env"]): boolean {
  return (env[CHATGPT] ?? "") !== "";
}

/** What Codex needs for a subscription: an access token, which may be refreshed outside. */
export function chatGptAccess(): AgentAccess {
  return {
    network: ["chatgpt.com"],
    secrets: [[TOKEN]],
    keys: { [TOKEN]: { host: "chatgpt.com", header: "authorization" } },
  };
}

/**
 * Starts Codex with the file of a login, as it takes a subscription from no variable. The file has what the variable has, usually a placeholder, and no
 * refresh token. Of the identity it reads the account only; by its date it is never too old.
 */
export function loginScript(account: string): string {
  const claims = { "https://api.openai.com/auth": { chatgpt_account_id: account } };
  const identity = [{ alg: "none" }, claims, {}].map((part) => Buffer.from(JSON.stringify(part)).toString("base64url"));
  const [before = "", after = ""] = JSON.stringify({
    auth_mode: "chatgpt",
    tokens: { id_token: identity.join("."), access_token: "\n", refresh_token: "", account_id: account },
    last_refresh: "2099-01-01T00:00:00Z",
  }).split("\\n");
  const quoted = [before, after].map((text) => `'${text.replaceAll("'", "'\\''")}'`);
  return [
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a shell reads it
    'folder="${CODEX_HOME:-$HOME/.codex}"',
    'umask 077; mkdir -p "$folder" || exit 1',
    `printf '%s%s%s' ${quoted[0]} "$${TOKEN}" ${quoted[1]} > "$folder/auth.json" || exit 1`,
    'exec codex "$@"',
  ].join("; ");
}

import type { ModelServer } from "./model-server.js";

/** Hosts of the services that logins are for. */
export const LOGIN_HOSTS: readonly string[] = [
  "api.anthropic.com",
  "platform.claude.com",
  "chatgpt.com",
  "auth.openai.com",
  "cloudcode-pa.googleapis.com",
  "oauth2.googleapis.com",
  "www.googleapis.com",
];
const ACCOUNT = "account-1";
const HOUR = 3_600_000;

/** A login of an agent's own, as its program stores it. */
export interface Login {
  readonly program: string;
  readonly task: { readonly agent: string; readonly model?: string; readonly args?: readonly string[] };
  /** Below HOME. */
  readonly path: string;
  /** What the file has; `left` is how long the access token is valid, in milliseconds. */
  content(access: string, refresh: string, left?: number): object;
  readonly host: string;
  readonly header: string;
  readonly scheme: string;
  /** Where its program refreshes it. */
  readonly tokenUrl?: string;
}

const encode = (part: object): string => Buffer.from(JSON.stringify(part)).toString("base64url");

/** A token as ChatGPT's are: signed, and with an account. */
export function chatGptToken(name: string, left: number = HOUR): string {
  const claims = {
    exp: Math.floor((Date.now() + left) / 1000),
    email: "somebody@example.test",
    "https://api.openai.com/auth": { chatgpt_account_id: ACCOUNT, chatgpt_plan_type: "plus" },
  };
  return [encode({ alg: "RS256", kid: name }), encode(claims), encode({ name: name.repeat(8) })].join(".");
}

/** The logins, by their programs. */
export const LOGINS: readonly Login[] = [
  {
    ...{ program: "claude", task: { agent: "claude-code", model: "claude-sonnet-4-5" } },
    path: ".claude/.credentials.json",
    content: (accessToken, refreshToken, left = HOUR) => ({
      claudeAiOauth: {
        ...{ accessToken, refreshToken, expiresAt: Date.now() + left },
        ...{ scopes: ["user:inference", "user:profile"], subscriptionType: "max" },
      },
    }),
    ...{ host: "api.anthropic.com", header: "authorization", scheme: "Bearer " },
    tokenUrl: "https://platform.claude.com/v1/oauth/token",
  },
  {
    program: "codex",
    // The server understands no compressed requests.
    task: { agent: "codex", args: ["--disable", "enable_request_compression"] },
    path: ".codex/auth.json",
    content: (access_token, refresh_token, left) => ({
      auth_mode: "chatgpt",
      tokens: { id_token: chatGptToken("id", left), access_token, refresh_token, account_id: ACCOUNT },
      last_refresh: new Date().toISOString(),
    }),
    ...{ host: "chatgpt.com", header: "authorization", scheme: "Bearer " },
    tokenUrl: "https://auth.openai.com/oauth/token",
  },
  {
    ...{ program: "pi", task: { agent: "pi", model: "anthropic/claude-sonnet-4-5" } },
    path: ".pi/agent/auth.json",
    content: (access, refresh, left = HOUR) => ({
      anthropic: { type: "oauth", refresh, access, expires: Date.now() + left },
    }),
    ...{ host: "api.anthropic.com", header: "x-api-key", scheme: "" },
  },
  {
    ...{ program: "opencode", task: { agent: "opencode", model: "anthropic/claude-sonnet-4-5" } },
    path: ".local/share/opencode/auth.json",
    content: (key) => ({ anthropic: { type: "api", key } }),
    ...{ host: "api.anthropic.com", header: "x-api-key", scheme: "" },
  },
  {
    ...{ program: "gemini", task: { agent: "gemini-cli", model: "gemini-2.5-pro" } },
    path: ".gemini/oauth_creds.json",
    content: (access_token, refresh_token, left = HOUR) => ({
      ...{ access_token, refresh_token, token_type: "Bearer", expiry_date: Date.now() + left },
      scope: "https://www.googleapis.com/auth/cloud-platform",
    }),
    ...{ host: "cloudcode-pa.googleapis.com", header: "authorization", scheme: "Bearer " },
  },
];

/** Answers what the programs ask of these services beside their models. */
export function serveAccounts(model: ModelServer): void {
  for (const path of ["/api/oauth/profile", "/api/claude_code/settings", "/api/claude_code/policy_limits"]) {
    model.serve(path, {});
  }
  const account = {
    ...{ id: ACCOUNT, plan_type: "plus" },
    ...{ workspace_backend_origin: "https://chatgpt.com", account_routing_override: "NO_CONSTRAINT" },
  };
  const accounts = { accounts: [account], account_ordering: [ACCOUNT], default_account_id: ACCOUNT };
  model.serve("/backend-api/wham/accounts/check", accounts);
  model.serve("/backend-api/wham/settings/user", {});
  model.serve("/backend-api/codex/models", { models: [] });
  // Codex tries a WebSocket first, and goes on without.
  model.serve("/backend-api/codex/responses", {});
  model.serve("/tokeninfo", { email: "somebody@example.test", expires_in: 3600, scope: "cloud-platform" }, "POST");
  model.serve("/oauth2/v2/userinfo", { email: "somebody@example.test" });
  const tier = { currentTier: { id: "standard-tier" }, cloudaicompanionProject: "project" };
  model.serve("/v1internal:loadCodeAssist", tier, "POST");
  model.serve("/v1internal:retrieveUserQuota", {}, "POST");
  model.serve("/v1internal:listExperiments", {}, "POST");
}

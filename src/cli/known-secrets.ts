import type { SecretRule } from "../../contracts/types.js";

const BEARER = "authorization";

/** Variables that everybody calls the same, and the hosts that their values belong to. */
export const KNOWN_SECRETS: Readonly<Record<string, SecretRule>> = {
  ANTHROPIC_API_KEY: { hosts: ["api.anthropic.com"], header: "x-api-key", prefix: "sk-ant-" },
  ANTHROPIC_AUTH_TOKEN: { hosts: ["api.anthropic.com"], header: BEARER },
  CLAUDE_CODE_OAUTH_TOKEN: { hosts: ["api.anthropic.com"], header: BEARER, prefix: "sk-ant-oat01-" },
  OPENAI_API_KEY: { hosts: ["api.openai.com"], header: BEARER, prefix: "sk-" },
  CODEX_API_KEY: { hosts: ["api.openai.com"], header: BEARER, prefix: "sk-" },
  GEMINI_API_KEY: { hosts: ["generativelanguage.googleapis.com"], header: "x-goog-api-key" },
  OPENROUTER_API_KEY: { hosts: ["openrouter.ai"], header: BEARER, prefix: "sk-or-v1-" },
  MISTRAL_API_KEY: { hosts: ["api.mistral.ai"], header: BEARER },
  GROQ_API_KEY: { hosts: ["api.groq.com"], header: BEARER },
  XAI_API_KEY: { hosts: ["api.x.ai"], header: BEARER },
  DEEPSEEK_API_KEY: { hosts: ["api.deepseek.com"], header: BEARER, prefix: "sk-" },
  GITHUB_TOKEN: { hosts: ["api.github.com", "github.com"], header: BEARER, git: "x-access-token" },
  GH_TOKEN: { hosts: ["api.github.com", "github.com"], header: BEARER, git: "x-access-token" },
};

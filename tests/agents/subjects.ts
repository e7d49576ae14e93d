import type { Turn } from "./model-server.js";

/** Tokens of a turn that says nothing else. */
export const USED = { input: 1000, output: 100 };

/** An agent that tries a request again for minutes: it is ended for its silence. */
export const PATIENT = "tries again for minutes";
const PATIENCE = { 429: PATIENT, 500: PATIENT, 529: PATIENT };

/**
 * By ACP, Gemini CLI 0.61.0 makes an empty file for each session that it loads. It is named after the minute: in the same minute it takes the place of the
 * session, and later the session is deleted with it at the next start. So the files get other names, and the empty ones go.
 */
const GEMINI_SETTLES = `cd ~/.gemini/tmp && for each in */chats/session-*; do
  if grep -q '"type":"gemini"' "$each"; then mv "$each" "\${each%/*}/session-0-\${each##*/}"; else rm "$each"; fi
done`;

/** When an agent says how many tokens it used: `one turn` is only then, in a new session. */
type Reports = "always" | "one turn" | "never";

/** An agent as the cases see it. */
export interface Subject {
  /** The column of the table. */
  readonly name: string;
  /** The program, as it is called. */
  readonly program: string;
  /** The fields of its node. */
  readonly task: Readonly<Record<string, unknown>> & { readonly agent: string };
  readonly secrets: Readonly<Record<string, string>>;
  /** The headers in which the model gets the key. */
  readonly auth: Readonly<Record<string, string>>;
  /** Variables that lead it to the gateway; and those that make it give up sooner, as its manual describes them. */
  env(gateway: string): Record<string, string>;
  /** A turn in which it runs a script. */
  shell(script: string): Turn;
  /** What a turn costs that uses `USED`; null: it does not say. */
  readonly price: number | null;
  readonly tokens: Reports;
  /** Whether a limit of cost is possible. */
  readonly hasCostLimit: boolean;
  /** Whether it says what a tool is called with only after it has said that it is called. */
  readonly namesLate?: boolean;
  /** Whether it asks its model for more than its turns, for example for a title. */
  readonly asksAside?: boolean;
  /** Whether it tries to fetch something beside its work that can't be switched off, for example its plugins. */
  readonly asksElsewhere?: boolean;
  /** Whether its sessions are saved with the checkpoints of a run. */
  readonly savesSessions: boolean;
  /** What it does when each answer breaks off. */
  readonly cutStream: "fails" | "fails without a cause" | "takes what came";
  /** What a failed request becomes, where that is not what it should be. */
  readonly failures?: Readonly<Record<number, string>>;
  /** The failure that may pass, by which the case of another try is run; by default the status 500. */
  readonly fallsBy?: "cut" | "kill";
  /** A script that is run before a session is continued, as the agent does not find it yet. */
  readonly settles?: string;
}

const use = (name: string, input: Record<string, unknown>): Turn => ({
  text: "I run it.",
  tools: [{ name, input }],
  usage: USED,
});

const OPENCODE = {
  program: "opencode",
  secrets: { OPENAI_API_KEY: "sk-key-for-the-test" },
  auth: { authorization: "Bearer sk-key-for-the-test" },
  env: (gateway: string) => ({
    OPENCODE_CONFIG_CONTENT: JSON.stringify({
      model: "scripted/m",
      provider: {
        scripted: {
          npm: "@ai-sdk/openai-compatible",
          options: { baseURL: `${gateway}/v1`, apiKey: "{env:OPENAI_API_KEY}" },
          models: { m: { name: "m", cost: { input: 1, output: 2 } } },
        },
      },
    }),
  }),
  shell: (command: string) => use("bash", { command, description: "run it" }),
  ...{ asksAside: true, asksElsewhere: true },
};

const GEMINI = {
  program: "gemini",
  secrets: { GEMINI_API_KEY: "gemini-key-for-the-test" },
  auth: { "x-goog-api-key": "gemini-key-for-the-test" },
  env: (gateway: string) => ({ GOOGLE_GEMINI_BASE_URL: gateway }),
  shell: (command: string) => use("run_shell_command", { command, description: "run it" }),
  ...{ asksAside: true, asksElsewhere: true },
};

/** The agents from npm. */
export const SUBJECTS: readonly Subject[] = [
  {
    name: "Claude Code",
    program: "claude",
    task: { agent: "claude-code", model: "claude-sonnet-4-5" },
    secrets: { ANTHROPIC_API_KEY: "sk-ant-key-for-the-test" },
    auth: { "x-api-key": "sk-ant-key-for-the-test" },
    env: (gateway) => ({ ANTHROPIC_BASE_URL: gateway, CLAUDE_CODE_MAX_RETRIES: "1" }),
    shell: (command) => use("Bash", { command, description: "run it" }),
    ...{ price: 0.0045, tokens: "always", hasCostLimit: true, savesSessions: true, cutStream: "takes what came" },
  },
  {
    name: "Codex",
    program: "codex",
    task: {
      agent: "codex",
      args: [
        ...["-c", "model_providers.gateway.request_max_retries=0"],
        ...["-c", "model_providers.gateway.stream_max_retries=1"],
      ],
    },
    secrets: { OPENAI_API_KEY: "sk-key-for-the-test" },
    auth: { authorization: "Bearer sk-key-for-the-test" },
    env: (gateway) => ({ OPENAI_BASE_URL: `${gateway}/v1` }),
    shell: (cmd) => use("exec_command", { cmd }),
    ...{ price: null, tokens: "always", hasCostLimit: false, savesSessions: true, cutStream: "fails" },
  },
  {
    name: "Pi",
    program: "pi",
    task: { agent: "pi", model: "anthropic/claude-sonnet-4-5" },
    secrets: { ANTHROPIC_API_KEY: "sk-ant-key-for-the-test" },
    auth: { "x-api-key": "sk-ant-key-for-the-test" },
    env: (gateway) => ({ ANTHROPIC_BASE_URL: gateway }),
    shell: (command) => use("bash", { command }),
    ...{ price: 0.0045, tokens: "always", hasCostLimit: true, savesSessions: true, cutStream: "fails" },
  },
  {
    name: "opencode",
    ...OPENCODE,
    task: { agent: "opencode", model: "scripted/m" },
    ...{ price: 0.0012, tokens: "always", hasCostLimit: true, savesSessions: true, cutStream: "fails" },
  },
  {
    name: "Gemini CLI",
    ...GEMINI,
    task: { agent: "gemini-cli", model: "gemini-2.5-pro" },
    failures: PATIENCE,
    // It tries again by itself for minutes after a status.
    fallsBy: "cut",
    ...{ price: null, tokens: "always", hasCostLimit: false, savesSessions: true, cutStream: "fails" },
  },
  {
    name: "Copilot CLI",
    program: "copilot",
    task: { agent: "copilot", model: "gpt-5" },
    secrets: { COPILOT_PROVIDER_API_KEY: "byok-key-for-the-test" },
    auth: { authorization: "Bearer byok-key-for-the-test" },
    env: (gateway) => ({ COPILOT_PROVIDER_BASE_URL: `${gateway}/v1`, COPILOT_OFFLINE: "true" }),
    shell: (command) => use("bash", { command, description: "run it", mode: "sync" }),
    ...{ price: null, tokens: "never", hasCostLimit: false, savesSessions: true, cutStream: "fails", asksAside: true },
  },
  {
    name: "ACP: opencode",
    ...OPENCODE,
    task: { agent: "acp", command: ["opencode", "acp"], model: "scripted/m", secrets: ["OPENAI_API_KEY"] },
    ...{ price: null, tokens: "one turn", hasCostLimit: false, savesSessions: false },
    ...{ cutStream: "fails without a cause", namesLate: true },
    failures: Object.fromEntries([401, 403, 429, 500, 529].map((status) => [status, "agent_error"])),
    // Its errors have no status by ACP.
    fallsBy: "kill",
  },
  {
    name: "ACP: Gemini CLI",
    ...GEMINI,
    task: {
      agent: "acp",
      command: ["gemini", "--acp", "--skip-trust", "-m", "gemini-2.5-pro"],
      secrets: ["GEMINI_API_KEY"],
    },
    ...{ price: null, tokens: "never", hasCostLimit: false, savesSessions: false, cutStream: "fails" },
    failures: PATIENCE,
    fallsBy: "cut",
    settles: GEMINI_SETTLES,
  },
];

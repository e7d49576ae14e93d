import type { Turn } from "./model-server.js";

/** An agent as the cases see it. */
export interface Subject {
  readonly agent: string;
  /** The program, as it is called. */
  readonly program: string;
  readonly model?: string;
  readonly secrets: Readonly<Record<string, string>>;
  /** The headers in which the model gets the key. */
  readonly auth: Readonly<Record<string, string>>;
  /** Variables that lead it to the gateway; and those that make it give up sooner, as its manual describes them. */
  env(gateway: string): Record<string, string>;
  /** A turn in which it runs a script. */
  shell(script: string): Turn;
  /** What a turn costs that uses 1000 tokens of input and 100 of output; null: it does not say. */
  readonly price: number | null;
  /** Arguments that make it give up sooner. */
  readonly args?: readonly string[];
}

const use = (name: string, input: Record<string, unknown>): Turn => ({
  text: "I run it.",
  tools: [{ name, input }],
  usage: { input: 1000, output: 100 },
});

/** The agents from npm. */
export const SUBJECTS: readonly Subject[] = [
  {
    agent: "claude-code",
    program: "claude",
    model: "claude-sonnet-4-5",
    secrets: { ANTHROPIC_API_KEY: "sk-ant-key-for-the-test" },
    auth: { "x-api-key": "sk-ant-key-for-the-test" },
    env: (gateway) => ({ ANTHROPIC_BASE_URL: gateway, CLAUDE_CODE_MAX_RETRIES: "1" }),
    shell: (command) => use("Bash", { command, description: "run it" }),
    price: 0.0045,
  },
  {
    agent: "codex",
    program: "codex",
    secrets: { OPENAI_API_KEY: "sk-key-for-the-test" },
    auth: { authorization: "Bearer sk-key-for-the-test" },
    env: (gateway) => ({ OPENAI_BASE_URL: `${gateway}/v1` }),
    shell: (cmd) => use("exec_command", { cmd }),
    price: null,
    args: [
      ...["-c", "model_providers.gateway.request_max_retries=0", "-c", "model_providers.gateway.stream_max_retries=1"],
    ],
  },
  {
    agent: "pi",
    program: "pi",
    model: "anthropic/claude-sonnet-4-5",
    secrets: { ANTHROPIC_API_KEY: "sk-ant-key-for-the-test" },
    auth: { "x-api-key": "sk-ant-key-for-the-test" },
    env: (gateway) => ({ ANTHROPIC_BASE_URL: gateway }),
    shell: (command) => use("bash", { command }),
    price: 0.0045,
  },
];

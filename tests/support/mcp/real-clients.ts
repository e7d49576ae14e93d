import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { ModelRequest, Turn } from "../../agents/model-server.js";
import { NODE_24, whyNoRuntime } from "../run/runtimes.js";

const INSTALLED = fileURLToPath(new URL("../../agents/programs/node_modules", import.meta.url));
const CLAUDE = join(INSTALLED, "@anthropic-ai", "claude-code", "bin", "claude.exe");
const CODEX = join(INSTALLED, "@openai", "codex", "bin", "codex.js");
const KEY = "sk-key-for-the-test";
const SERVER = "mcp__glovebox__";
/** Nothing answers there, so a program can't reach the network. */
const NOWHERE = "http://127.0.0.1:9";

/** A call of one of our tools that the model makes. */
export interface Wish {
  readonly tool: string;
  readonly input: Readonly<Record<string, unknown>>;
  /** The call is cancelled once this resolves. */
  cutWhen?(): Promise<unknown>;
}

/** What the model gets to see of the answer. */
export interface Heard {
  readonly text: string;
  readonly isError: boolean;
  /** Images, as base64. */
  readonly images: readonly string[];
}

/** How one program is started, spoken to, and asked for a call by its model. */
export interface Dialect {
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** A turn that has to come before the next call, if one has to. */
  prepare(request: ModelRequest): Promise<Turn | undefined>;
  /** The turn that makes the call. */
  turn(wish: Wish): Turn;
  heard(request: ModelRequest): Heard;
  /** What to write to its standard input at the start, and after each line that it prints; null closes it. */
  begin(): string | null;
  onLine(line: Readonly<Record<string, unknown>>, isOver: boolean): string | null | undefined;
  /** What to write to its standard input to cancel a call; undefined if the model does it. */
  cancel(): string | undefined;
}

/** A program from npm that the server is installed in. */
export interface RealClient {
  /** As `mcp install` names it. */
  readonly name: "claude-code" | "codex";
  readonly title: string;
  /** `port` is that of the model. */
  speak(port: number): Dialect;
}

/** The clients, in the eras of the protocol that they speak. */
export const REAL_CLIENTS: readonly RealClient[] = [
  { name: "claude-code", title: "Claude Code", speak: claude },
  { name: "codex", title: "Codex", speak: (port) => codex(port, []) },
  {
    name: "codex",
    title: "Codex in the era of 2026",
    speak: (port) => codex(port, ["-c", "features.mcp_2026_07_28=true"]),
  },
];

/** Why a client can't be run here; undefined when it can. */
export function whyNoClient({ name }: RealClient): string | undefined {
  if (!existsSync(name === "codex" ? CODEX : CLAUDE)) {
    return "its package is not installed: npm install --no-save --prefix tests/agents/programs";
  }
  return whyNoRuntime(NODE_24.program);
}

interface Block {
  type?: string;
  text?: string;
  tool_name?: string;
  is_error?: boolean;
  image_url?: string;
  source?: { data: string };
  content?: string | Block[];
}

const ALL = ["exec", "process_read", "file_read", "file_write", "file_edit"].map((tool) => SERVER + tool);

/** Claude Code tells its model the names of the tools only, and the model loads those that it wants. */
function claude(port: number): Dialect {
  const say = (text: string): string => JSON.stringify({ type: "user", message: { role: "user", content: text } });
  const lastResult = ({ body }: ModelRequest): Block | undefined =>
    (body["messages"] as Block[])
      .flatMap(({ content }) => (Array.isArray(content) ? content : []))
      .findLast(({ type }) => type === "tool_result");
  let isLoaded = false;
  let isCut = false;
  return {
    command: [
      ...[CLAUDE, "-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"],
      ...["--model", "claude-sonnet-4-5", "--allowedTools", "mcp__glovebox"],
    ],
    env: {
      ...{ ANTHROPIC_BASE_URL: `http://127.0.0.1:${port}`, ANTHROPIC_API_KEY: KEY, CLAUDE_CODE_MAX_RETRIES: "0" },
      ...{ CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1", HTTPS_PROXY: NOWHERE, NO_PROXY: "127.0.0.1" },
    },
    async prepare(request) {
      const found = lastResult(request)?.content;
      const names = Array.isArray(found) ? found.flatMap(({ tool_name: name }) => name ?? []) : [];
      isLoaded ||= ALL.every((name) => names.includes(name));
      if (isLoaded) return undefined;
      return { tools: [{ name: "ToolSearch", input: { query: `select:${ALL.join(",")}`, max_results: ALL.length } }] };
    },
    turn: ({ tool, input }) => ({ tools: [{ name: SERVER + tool, input }] }),
    heard(request) {
      const result = lastResult(request);
      const content = result?.content ?? [];
      const parts: Block[] = typeof content === "string" ? [{ type: "text", text: content }] : content;
      const texts = parts.flatMap(({ text = "" }) => text.split("<system-reminder>")[0] ?? "");
      return {
        text: texts
          .filter((text) => !text.startsWith("[Image: source:"))
          .join("\n")
          .trimEnd(),
        isError: result?.is_error === true,
        images: parts.flatMap(({ source }) => source?.data ?? []),
      };
    },
    begin: () => say("do it"),
    onLine({ type }, isOver) {
      if (type !== "result") return undefined;
      if (isOver) return null;
      if (!isCut) return undefined;
      isCut = false;
      return say("go on");
    },
    cancel() {
      isCut = true;
      return JSON.stringify({ type: "control_request", request_id: "cut", request: { subtype: "interrupt" } });
    },
  };
}

/** The model of Codex calls tools by JavaScript, and gives a call up by ending that. */
function codex(port: number, more: readonly string[]): Dialect {
  const provider = {
    name: "scripted",
    base_url: `http://127.0.0.1:${port}/v1`,
    env_key: "OPENAI_API_KEY",
    wire_api: "responses",
  };
  const settings = Object.entries(provider).map(([key, value]) => `model_providers.scripted.${key}="${value}"`);
  const lastOutput = ({ body }: ModelRequest): Block[] => {
    const items = body["input"] as { type?: string; output?: string | Block[] }[];
    const output = items.findLast(({ type }) => type?.endsWith("_call_output"))?.output ?? [];
    return typeof output === "string" ? [{ text: output }] : output;
  };
  let cutting: Wish | undefined;
  let isListed = false;
  return {
    command: [
      ...[NODE_24.program, CODEX, "exec", "--json", "--skip-git-repo-check", ...more],
      // Without it every call of a tool asks the user.
      "--dangerously-bypass-approvals-and-sandbox",
      ...['model_provider="scripted"', ...settings].flatMap((setting) => ["-c", setting]),
      "do it",
    ],
    env: { OPENAI_API_KEY: KEY, HTTPS_PROXY: NOWHERE, NO_PROXY: "127.0.0.1" },
    async prepare(request) {
      isListed ||= lastOutput(request).some(({ text }) => text === LISTED);
      // It starts servers while its model works already.
      if (!isListed) return { tools: [{ name: "exec", input: LOOK }] };
      const cell = /^Script running with cell ID (\S+)/.exec(lastOutput(request)[0]?.text ?? "")?.[1];
      if (cell === undefined || cutting === undefined) return undefined;
      await cutting.cutWhen?.();
      cutting = undefined;
      return { tools: [{ name: "wait", input: { cell_id: cell, terminate: true } }] };
    },
    turn(wish) {
      const { tool, input, cutWhen } = wish;
      cutting = cutWhen === undefined ? undefined : wish;
      const lines = [
        `// @exec: {"yield_time_ms": ${cutWhen === undefined ? 60_000 : 500}}`,
        `const answer = await tools.${SERVER}${tool}(${JSON.stringify(input)});`,
        'for (const part of answer.content) if (part.type === "image") image(part); else text(part.text);',
        `if (answer.isError) text("${FAILED}");`,
      ];
      return { tools: [{ name: "exec", input: lines.join("\n") }] };
    },
    heard(request) {
      const [, ...parts] = lastOutput(request);
      const texts = parts.flatMap(({ text }) => text ?? []);
      return {
        text: texts
          .filter((text) => text !== FAILED)
          .join("\n")
          .trimEnd(),
        isError: texts.includes(FAILED),
        images: parts.flatMap(({ image_url: url }) => url?.replace(/^data:image\/png;base64,/, "") ?? []),
      };
    },
    begin: () => null,
    onLine: () => undefined,
    cancel: () => undefined,
  };
}

const FAILED = "the call failed";
const LISTED = "it is listed";
const LOOK = `await new Promise((done) => setTimeout(done, 200)); if (tools.${SERVER}exec) text("${LISTED}");`;

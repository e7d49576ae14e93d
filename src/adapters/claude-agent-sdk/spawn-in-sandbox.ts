import type { SpawnedProcess, SpawnOptions as SpawnRequest } from "@anthropic-ai/claude-agent-sdk";
import type { Sandbox } from "../../../contracts/sandbox.js";
import { isPathConfined } from "../../util/path.js";
import { isSecretName } from "../../util/secret-forms.js";
import { forCall } from "../run-command.js";
import { ProcessInSandbox } from "./process-in-sandbox.js";

/** How Claude Code runs in the sandbox. */
export interface ClaudeCodeOptions {
  /**
   * Its program as the sandbox has it. Default: the one that the SDK names, at the same path; mount its directory.
   */
  executable?: string;
  /** Names of further variables of the SDK's environment for it, for example ANTHROPIC_API_KEY, which it then sees. */
  env?: readonly string[];
  /** Called with what it writes to standard error. */
  onStderr?(text: string): void;
}

/** The sandbox around it is ours, and it can't reach what updates and reports itself. */
const INSIDE = { IS_SANDBOX: "1", DISABLE_AUTOUPDATER: "1", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1" };

/**
 * Makes the option `spawnClaudeCodeProcess`: Claude Code itself, with its tools, runs in the sandbox, and only its messages come out. Of the
 * environment it gets variables that start with CLAUDE_ or ANTHROPIC_, without those that look like secrets. Let the sandbox have the key by its
 * option `secrets`.
 */
export function spawnInSandbox(
  sandbox: Sandbox,
  options: ClaudeCodeOptions = {},
): (request: SpawnRequest) => SpawnedProcess {
  const { executable, env: names = [], onStderr } = options;
  return ({ command, args, cwd, env, signal }) => {
    const passed = Object.entries(env).filter(([name]) => names.includes(name) || isForClaude(name));
    const inside = cwd !== undefined && isPathConfined(cwd, sandbox.workDir) ? cwd : sandbox.workDir;
    const argv = executable === undefined ? [command, ...args] : [executable, ...withoutScript(command, args)];
    const call = forCall({ cwd: inside, env: { ...Object.fromEntries(passed), ...INSIDE } });
    const process = new ProcessInSandbox(sandbox, { ...call, argv, stdin: "pipe" }, signal);
    // Nobody else reads it, and a process that nobody reads stands still.
    process.stderr.setEncoding("utf8").on("data", (text: string) => onStderr?.(text));
    return process;
  };
}

function isForClaude(name: string): boolean {
  return /^(?:CLAUDE|ANTHROPIC)_/.test(name) && !isSecretName(name);
}

/** The arguments of Claude Code itself, where the SDK runs its script by Node or Bun. */
function withoutScript(command: string, args: readonly string[]): readonly string[] {
  const script = args.findIndex((arg) => /\.[cm]?js$/.test(arg));
  return /(?:^|\/)(?:node|bun|deno)$/.test(command) && script >= 0 ? args.slice(script + 1) : args;
}

import { delimiter, isAbsolute } from "node:path";
import { findProgram, trustedDirectories } from "../../machine/trusted-programs.js";
import { findGit } from "../../sandbox/host.js";
import { isWithin, realPathOf } from "../../util/repository-of.js";
import { outputOf } from "../output-of.js";
import { type Answer, plainAddress, type Question, type ToolSettings } from "./tool.js";

/** What npm, pnpm, yarn and corepack set for the programs that they start. */
const OF_NPM = /^(?:npm_|pnpm_|NODE_OPTIONS$|NODE_PATH$|INIT_CWD$|PROJECT_CWD$|BERRY_BIN_FOLDER$|COREPACK_ROOT$)/;
/** Nothing is fetched, written or coloured for an answer. */
const QUIET = {
  npm_config_update_notifier: "false",
  npm_config_logs_max: "0",
  npm_config_loglevel: "silent",
  COREPACK_ENABLE_NETWORK: "0",
  YARN_ENABLE_TELEMETRY: "0",
  GOTOOLCHAIN: "path",
  NO_COLOR: "1",
};

/** Who asks. */
export interface Asker {
  readonly env: ToolSettings["env"];
  readonly repository?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds that the tool has for its answer. */
  readonly deadline?: number;
}

/** Answers of tools in their own state, which does not change while this process runs. */
const remembered = new Map<string, Answer>();

/** Whether a surrounding npm has set variables: in lower case, and some of them from the project. */
export function isBelowNpm(env: ToolSettings["env"]): boolean {
  return env["npm_execpath"] !== undefined || env["npm_lifecycle_event"] !== undefined;
}

/**
 * Asks a tool of the user's PATH where it gets packages from. It runs in `/`, where no project is above it and only root writes, and sees neither
 * programs nor files of the repository. What it prints is not trusted: it counts only if it starts with an address.
 */
export async function askTool(question: Question, asker: Asker): Promise<Answer> {
  const { env, repository, signal, deadline = 20_000 } = asker;
  const { program: name } = question;
  const directories = trustedDirectories(env["PATH"] ?? "", repository);
  const program = findProgram(name, directories, repository);
  if (program === undefined) return { reason: `there is no ${name} in PATH` };
  const key = JSON.stringify([program, question]);
  const known = question.isUnconfigured === true ? remembered.get(key) : undefined;
  if (known !== undefined) return known;
  signal?.throwIfAborted();
  const output = await outputOf([...findGit().launcher.ending, program, ...question.args], {
    env: { ...ownVariables(question, asker), PATH: directories.join(delimiter), ...QUIET, ...question.env },
    signal,
    deadline,
  });
  signal?.throwIfAborted();
  const answer = toAnswer(name, output);
  if (question.isUnconfigured === true && answer.lines !== undefined) remembered.set(key, answer);
  return answer;
}

/** The variables of the user: none that a surrounding npm has set, and none that names something in the repository. */
function ownVariables({ isUnconfigured }: Question, { env, repository }: Asker): Record<string, string> {
  const isLeftOut = (name: string, value: string): boolean =>
    (isBelowNpm(env) && OF_NPM.test(name)) ||
    (isUnconfigured === true && /^p?npm_config_/i.test(name)) ||
    (repository !== undefined && isAbsolute(value) && isWithin(realPathOf(value), realPathOf(repository)));
  const own = Object.entries(env).flatMap(([name, value]) =>
    value === undefined || isLeftOut(name, value) ? [] : [[name, value] as const],
  );
  return Object.fromEntries(own);
}

function toAnswer(name: string, output: string | undefined): Answer {
  const reason = `${name} does not say where it gets packages from`;
  const lines = (output ?? "").trim().split(/\r?\n/);
  const [first = ""] = (lines[0] ?? "").split(/[,|]/);
  if (plainAddress(first) === undefined) return { reason };
  return lines.every((line) => /^[\x20-\x7e]{0,2048}$/.test(line)) ? { lines } : { reason };
}

import type { OpenOptions } from "../sandbox.js";
import { BlockedQuestions } from "./blocked-questions.js";
import { UsageError } from "./commands.js";
import type { Invocation } from "./invocation.js";
import { LearnedHosts } from "./learned-hosts.js";
import type { Sink } from "./terminal.js";

/** What `--ask` and `--learn` do beside a command. */
export interface Supervision {
  /** For the sandbox. */
  readonly options: Pick<OpenOptions, "network" | "onBlocked">;
  /** Hears each warning of the sandbox. */
  hear(warning: string): void;
  /** Holds the output of the command back while a question is open. */
  over(sink: Sink): Sink;
  /** Asks nothing more. */
  close(): void;
  /** Writes down what was learned. */
  finish(): Promise<void>;
}

const NONE: Supervision = {
  options: {},
  hear: () => undefined,
  over: (sink) => sink,
  close: () => undefined,
  finish: async () => undefined,
};

/** What the flags `--ask` and `--learn` ask for. Refuses what can't be done, before a sandbox is made. */
export function superviseNetwork({ flags, screen }: Invocation): Supervision {
  const [isAsked, file] = [flags.has("ask"), flags.text("learn")];
  if (flags.has("force") && file === undefined) throw new UsageError("--force needs --learn", "remove it");
  const flag = isAsked ? "--ask" : "--learn";
  if (!isAsked && file === undefined) return NONE;
  const others = [...(isAsked ? ["learn"] : ["network", "id", "reopen", "secret"])];
  const other = others.find((name) => flags.has(name));
  if (other !== undefined) throw new UsageError(`${flag} does not go together with --${other}`, "remove one of them");
  if (file !== undefined) {
    const learned = new LearnedHosts(file, flags.has("force"));
    return {
      ...NONE,
      options: { network: { allow: [] }, onBlocked: (request) => learned.add(request) },
      hear: (warning) => learned.hear(warning),
      finish: () => learned.write(screen),
    };
  }
  if (process.stdin.isTTY !== true || screen.stderr.isTTY !== true) {
    throw new UsageError("--ask needs a terminal", "name the hosts: --network allow=<host>");
  }
  const network = flags.text("network");
  if (network === "none" || network === "full") {
    throw new UsageError(`--ask does not go together with --network ${network}`, "leave --network out, or list hosts");
  }
  const questions = new BlockedQuestions(screen);
  const isNew = network === undefined && !flags.has("id") && !flags.has("reopen");
  return {
    ...NONE,
    options: { ...(isNew && { network: { allow: [] } }), onBlocked: (request) => questions.ask(request) },
    over: (sink) => questions.over(sink),
    close: () => questions.close(),
  };
}

import type { Fields, Schema } from "../../util/schema.js";
import * as is from "../../util/schema.js";
import type {
  AgentReport,
  ChangeSummary,
  CheckResult,
  CommandSetting,
  NodeAttempt,
  NodeKind,
  NodeReport,
  NodeResult,
  PushResult,
  RunError,
  RunReport,
  SecretReport,
  TokenUsage,
} from "../node-types.js";
import { KINDS } from "../nodes.js";

const text = is.string();
const number = is.scalar("number");
const integer = is.scalar("integer");
const texts: Schema<string[]> = is.list(text);
const price = is.scalar(["number", "null"]);

const usage: Schema<TokenUsage> = is.reference("usage", () =>
  is.object({
    input: is.required(number),
    output: is.required(number),
    cacheRead: is.required(number),
    cacheWrite: is.required(number),
  }),
);

const error: Schema<RunError> = is.reference("error", () =>
  is.object({ code: is.required(text), message: is.required(text), retryable: is.required(is.flag), hint: text }),
);

const agent: Schema<AgentReport> = is.reference("agent", () =>
  is.object({
    name: is.required(text),
    version: text,
    model: text,
    sessionId: text,
    turns: integer,
    usage,
    costUsd: is.required(is.noted(price, { description: "Null when the agent does not say." })),
    session: is.noted(is.object({ usage: is.required(usage), costUsd: number }), {
      description: "Of all nodes that continued the same session, where the agent counts that.",
    }),
    terminalReason: text,
    failure: is.oneOf(
      "rate_limit",
      "network",
      "crash",
      "unauthenticated",
      "quota",
      "refused",
      "agent_error",
      "no_result",
    ),
  }),
);

const setting: Fields<CommandSetting> = {
  cwd: text,
  env: is.record(text),
  hiddenEnv: is.noted(texts, { description: "Names of variables whose values are not written down." }),
};

const check: Schema<CheckResult> = is.reference("check", () =>
  is.object({
    id: is.required(text),
    status: is.required(is.oneOf("success", "failure", "cancelled")),
    exitCode: integer,
    durationMs: is.required(number),
    timedOut: is.flag,
    output: is.required(text),
    command: text,
    hint: text,
    ...setting,
  }),
);

const status: Schema<NodeResult["status"]> = is.oneOf("success", "failure", "skipped", "cancelled", "limit");

const attempt: Schema<NodeAttempt> = is.reference("attempt", () =>
  is.object({
    attempt: is.required(integer),
    status: is.required(status),
    durationMs: is.required(number),
    error,
    costUsd: is.noted(price, { description: "Of an agent. Null when it did not say." }),
  }),
);

const node: Schema<NodeReport> = is.reference("node", () =>
  is.object({
    id: is.required(text),
    name: is.required(text),
    kind: is.required(is.oneOf<NodeKind[]>(...KINDS.map(({ name }) => name))),
    status: is.required(status),
    output: is.required(text),
    durationMs: is.required(number),
    error,
    attempt: is.required(integer),
    attempts: is.list(attempt),
    startedAt: is.required(text),
    outputTruncated: is.required(is.flag),
    exitCode: integer,
    reason: text,
    command: text,
    ...setting,
    tolerated: is.flag,
    reused: is.flag,
    agent,
    checks: is.list(check),
    rounds: integer,
    commit: text,
    children: is.list(node),
    stdoutPath: text,
    stderrPath: text,
  }),
);

const push: Schema<PushResult> = is.object({
  pushed: is.required(is.flag),
  prUrl: text,
  error: text,
  state: is.oneOf("not_requested", "not_allowed", "no_token", "no_changes", "push_failed", "pr_failed", "ok"),
  draft: is.flag,
  existing: is.flag,
  tree: text,
  commit: text,
});

const changes: Schema<ChangeSummary> = is.object({
  files: is.required(
    is.list(
      is.object({ path: is.required(text), status: is.required(is.oneOf("added", "modified", "deleted", "renamed")) }),
    ),
  ),
  insertions: is.required(integer),
  deletions: is.required(integer),
  patchPath: text,
});

/** What `report.json` looks like. */
export const reportSchema: Schema<RunReport> = is.object(
  {
    schemaVersion: is.required(is.literal(1, "1")),
    runId: is.required(text),
    blueprint: is.required(text),
    repo: is.required(text),
    intent: is.required(text),
    status: is.required(is.oneOf("running", "success", "failed", "no_changes", "limit", "cancelled", "error")),
    exitCode: is.required(integer),
    nodes: is.required(is.list(node)),
    startedAt: is.required(text),
    finishedAt: text,
    totalDurationMs: is.required(number),
    tokenUsage: is.required(usage),
    cost: is.required(is.object({ usd: is.required(price), unpriced: is.required(texts) })),
    limitsHit: is.required(
      is.list(
        is.object({
          limit: is.required(is.oneOf("wall", "cost", "turns", "idle")),
          nodeId: is.required(text),
          allowed: is.required(number),
          used: number,
        }),
      ),
    ),
    push: is.required(is.flag),
    branch: text,
    base: text,
    baseCommit: text,
    headCommit: text,
    tree: text,
    pushResult: push,
    changes,
    sandbox: is.object({ type: is.required(text), id: is.required(text), image: text, kept: is.required(is.flag) }),
    secrets: is.list(
      is.object<SecretReport>({
        name: is.required(text),
        kept: is.required(is.oneOf("outside", "inside")),
        hosts: is.list(text),
        why: text,
      }),
    ),
    error,
    warnings: is.required(texts),
    version: is.required(text),
    resumedFrom: text,
  },
  {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    $id: "urn:glovebox:report:1",
    title: "The report of a run",
    description: "report.json in the directory of a run: current after each node, final when finishedAt is there.",
  },
);

interface AgentAccess {
  readonly network: readonly string[];
  readonly secrets: readonly (readonly string[])[];
  readonly keys?: Readonly<Record<string, AgentKey>>;
  readonly logins?: Readonly<Record<string, readonly string[]>>;
}

interface AgentCommand {
  readonly argv: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin: string;
  readonly homeFiles?: Readonly<Record<string, string>>;
}

interface AgentDialog extends AgentReader {
  start(): void;
  overlong(): readonly AgentSignal[];
  cancel(): void;
  close(): Promise<void>;
}

interface AgentDriver extends AgentAccess {
  readonly name: string;
  readonly reportsCost: boolean;
  readonly providers?: readonly AgentProvider[];
  readonly startsMcp?: boolean;
  readonly cannot?: readonly ("tools" | "continue")[];
  readonly versionArgv?: readonly string[];
  readonly minVersion?: string;
  readonly installHint: string;
  readonly tried?: readonly string[];
  readonly sessionFolders?: readonly string[];
  readonly sessionsOfWorkDir?: boolean;
  command(request: AgentRequest): AgentCommand;
  reader(before?: SessionTotals): AgentReader;
  dialog?(request: AgentRequest, host: AgentHost): AgentDialog;
}

type AgentFailure =
  | "rate_limit"
  | "network"
  | "crash"
  | "unauthenticated"
  | "quota"
  | "refused"
  | "agent_error"
  | "no_result";

interface AgentHost {
  readonly sandbox: Pick<Sandbox, "workDir" | "readFile" | "stat" | "writeFile" | "spawn">;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  send(line: string): void;
}

interface AgentJob extends Pick<Step, "env" | "secrets" | "cwd" | "timeout"> {
  readonly task: AgentTask;
  readonly nodeId: string;
  readonly parentId?: string;
  readonly more?: MoreNames;
}

interface AgentKey {
  readonly host?: string;
  readonly otherHosts?: readonly string[];
  readonly unknown?: string;
  readonly header?: string;
  readonly sign?: "aws";
  readonly with?: readonly string[];
  readonly maybeWith?: readonly string[];
  readonly prefix?: string;
  readonly baseUrl?: string;
  readonly config?: string;
}

interface AgentMcpServer {
  readonly command: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

interface AgentNode extends NodeBase, AgentTask {
  readonly kind: "agent";
}

interface AgentOutcome extends StepOutcome {
  agent: AgentReport;
  output: string;
}

interface AgentProvider {
  readonly name: string;
  readonly by?: string;
  isChosen(setting: AgentSetting): boolean;
  access(setting: AgentSetting): AgentAccess;
}

interface AgentReader {
  line(text: string): readonly AgentSignal[];
  end(exit: { exitCode: number; signal?: string; stderr: string }): AgentVerdict;
}

interface AgentReport {
  name: string;
  version?: string;
  model?: string;
  sessionId?: string;
  turns?: number;
  usage?: TokenUsage;
  costUsd: number | null;
  session?: SessionTotals;
  terminalReason?: string;
  failure?: AgentFailure;
}

interface AgentRequest {
  readonly prompt: string;
  readonly systemPrompt?: string;
  readonly model?: string;
  readonly tools?: readonly string[];
  readonly sessionId?: string;
  readonly maxCostUsd?: number;
  readonly maxTurns?: number;
  readonly env?: Readonly<Record<string, string>>;
  readonly args?: readonly string[];
  readonly mcp?: Readonly<Record<string, AgentMcpServer>>;
  readonly secretNames?: readonly string[];
}

interface AgentSetting {
  readonly env: Readonly<Record<string, string>>;
  readonly model?: string;
  readonly home?: Readonly<Record<string, string>>;
}

type AgentSignal =
  | {
      readonly type: "session";
      readonly sessionId: string;
      readonly model?: string;
    }
  | {
      readonly type: "message";
      readonly text: string;
    }
  | {
      readonly type: "tool_call";
      readonly tool: string;
      readonly summary: string;
    }
  | {
      readonly type: "tool_result";
      readonly tool?: string;
      readonly isError: boolean;
    }
  | {
      readonly type: "turn";
    }
  | {
      readonly type: "usage";
      readonly usage?: TokenUsage;
      readonly costUsd?: number;
      readonly isUnpriced?: boolean;
      readonly session?: SessionTotals;
    }
  | {
      readonly type: "alive";
    }
  | {
      readonly type: "result";
      readonly result: AgentVerdict;
    };

interface AgentSpec extends NodeSpecBase, AgentTaskSpec {
  kind: "agent" | "agentic";
}

interface AgentTask {
  readonly agent: string | AgentDriver;
  readonly command?: readonly string[];
  readonly output?: "text" | "events";
  readonly prompt: Text;
  readonly systemPrompt?: Text;
  readonly model?: string;
  readonly tools?: readonly string[];
  readonly args?: readonly string[];
  readonly mcp?: Readonly<Record<string, AgentMcpServer>>;
  readonly continue?: string;
  readonly network: {
    readonly allow: readonly (string | NetworkRule)[];
  };
  readonly limits: Partial<RunLimits>;
}

interface AgentTaskSpec extends Partial<Omit<AgentTask, "prompt" | "network" | "limits">> {
  prompt: Text;
  allowedTools?: readonly string[];
  network?: Partial<AgentTask["network"]>;
  limits?: LimitsSpec;
}

interface AgentUse {
  readonly task: AgentTask;
  readonly place: FieldPath;
  readonly secrets: readonly string[];
  readonly env?: Readonly<Record<string, Text>>;
}

interface AgentVerdict {
  readonly isError: boolean;
  readonly text: string;
  readonly failure?: AgentFailure;
  readonly limit?: "cost" | "turns";
  readonly terminalReason?: string;
  readonly turns?: number;
}

type AnySpec = NodeSpecBase & {
  readonly kind: string;
};

type AsWritten = "id" | "name" | "description" | "when" | "needs" | "continueOnError" | "env" | "cwd" | "secrets";

interface Blueprint {
  readonly version: 1;
  readonly name: string;
  readonly description?: string;
  readonly inputs: Readonly<Record<string, InputSpec>>;
  readonly sandbox: BlueprintSandbox;
  readonly limits: RunLimits;
  readonly nodes: readonly BlueprintNode[];
  readonly expectsChanges: boolean;
  readonly source?: string;
}

type BlueprintNode = PartsOf<(typeof TABLE)[NodeKind]>["node"];

interface BlueprintSandbox {
  readonly image?: string;
  readonly workspace?: "worktree" | "overlay" | "copy";
  readonly network?: "none" | "full";
  readonly allow: readonly (string | NetworkRule)[];
  readonly deny?: readonly (string | NetworkRule)[];
  readonly env: Readonly<Record<string, string>>;
  readonly secrets?: Readonly<Record<string, Omit<SecretRule, "from" | "force">>>;
  readonly setup: readonly (readonly string[])[];
  readonly install?: false | readonly string[];
  readonly copy?: readonly string[];
  readonly home?: Readonly<Record<string, string | HomeFile>>;
  readonly limits?: Limits;
  readonly mounts: readonly Mount[];
}

interface BlueprintSpec {
  version?: 1;
  name: string;
  description?: string;
  inputs?: Readonly<Record<string, Partial<InputSpec>>>;
  sandbox?: Partial<BlueprintSandbox>;
  limits?: LimitsSpec;
  expectsChanges?: boolean;
  nodes: readonly NodeSpec[];
}

declare const CLIENTS: readonly ["claude-code", "codex", "cursor", "vscode", "gemini", "opencode"];

interface ChangeSummary {
  files: {
    path: string;
    status: "added" | "modified" | "deleted" | "renamed";
  }[];
  insertions: number;
  deletions: number;
  patchPath?: string;
}

type Check<T = unknown> = (value: T, name: string) => void;

interface CheckResult extends CommandSetting {
  id: string;
  status: "success" | "failure" | "cancelled";
  exitCode?: number;
  durationMs: number;
  timedOut?: boolean;
  output: string;
  command?: string;
  hint?: string;
}

interface CheckSpec extends Partial<Omit<GateCheck, "timeout">> {
  name?: string;
  timeout?: Duration;
}

interface ClientEntry {
  readonly command: string;
  readonly args: readonly string[];
}

type ClientName = (typeof CLIENTS)[number];

interface CommandNode extends NodeBase, Readonly<RunnableSpec> {
  readonly kind: "command";
}

interface CommandSetting {
  cwd?: string;
  env?: Record<string, string>;
  hiddenEnv?: string[];
}

interface CommandSpec extends NodeSpecBase, RunnableSpec {
  kind: "command" | "preflight" | "deterministic";
  check?: NodeFunction;
}

interface CommitNode extends NodeBase {
  readonly kind: "commit";
  readonly message: Text;
  readonly author?: {
    readonly name: string;
    readonly email: string;
  };
}

interface CommitSpec extends NodeSpecBase {
  kind: "commit";
  message: Text;
  author?: {
    name: string;
    email: string;
  };
}

type Condition = string | ((context: RunContext) => boolean | Promise<boolean>);

type Duration = number | string;

interface Fault {
  readonly place: FieldPath;
  readonly message: string;
  readonly isKey?: boolean;
}

type FieldPath = readonly (string | number)[];

type Fields<T> = {
  readonly [K in keyof T]-?: Partial<Pick<T, K>> extends Pick<T, K> ? Schema<Exclude<T[K], undefined>> : Needed<T[K]>;
};

interface GateCheck extends Readonly<RunnableSpec> {
  readonly id: string;
  readonly timeout?: number;
  readonly env: Readonly<Record<string, Text>>;
  readonly cwd?: string;
}

interface GateNode extends NodeBase {
  readonly kind: "gate";
  readonly checks: readonly GateCheck[];
  readonly onFail?: GateRepair;
  readonly protect: readonly string[];
}

interface GateRepair extends AgentTask, RepairOptions {}

interface GateSpec extends NodeSpecBase {
  kind: "gate" | "validate";
  checks?: readonly CheckSpec[];
  steps?: readonly CheckSpec[];
  onFail?: RepairSpec;
  onFailure?: RepairSpec;
  maxRetries?: number;
  protect?: readonly string[];
}

interface HarnessOptions {
  blueprint: string | Blueprint | BlueprintSpec;
  repo: string;
  intent: string;
  push?: boolean;
  pushOn?: PushOn;
  draft?: boolean;
  prWith?: PrWith;
  sandboxType?: string;
  runId?: string;
  reporter?: Reporter | readonly Reporter[];
  specPath?: string;
  githubToken?: string;
  daytona?: NonNullable<SandboxOptions["daytona"]>;
  sandbox?: SandboxOptions;
  sandboxDefaults?: SandboxOptions;
  preferredWorkDir?: string;
  ref?: string;
  branch?: string;
  base?: string;
  agent?: string;
  model?: string;
  agents?: Readonly<Record<string, AgentDriver>>;
  inputs?: Readonly<Record<string, string | number | boolean>>;
  env?: Readonly<Record<string, string>>;
  secretSource?: Readonly<Record<string, string | undefined>>;
  limits?: Partial<RunLimits>;
  network?: NetworkPolicy;
  install?: boolean;
  copy?: readonly string[];
  from?: string;
  until?: string;
  keep?: "never" | "failed" | "always";
  out?: string;
  trust?: boolean;
  signal?: AbortSignal;
}

interface HomeFile {
  readonly file: string;
}

type HostWish = (value: unknown) => string | undefined;

interface HttpOptions {
  port?: number;
  host?: string;
  tokens: readonly string[];
  allowHosts?: readonly string[];
  allowOrigins?: readonly string[];
  rate?: number;
}

interface HttpServer extends AsyncDisposable {
  readonly url: string;
  close(): Promise<void>;
}

interface InputSpec {
  readonly type: "string" | "number" | "boolean";
  readonly description?: string;
  readonly required: boolean;
  readonly default?: string | number | boolean;
}

interface InstallOptions {
  readonly client: ClientName;
  readonly scope?: InstallScope;
  readonly name?: string;
  readonly home?: string;
  readonly project?: string;
  readonly dryRun?: boolean;
}

interface InstallReport {
  readonly client: ClientName;
  readonly file: string;
  readonly changed: boolean;
}

type InstallScope = "user" | "project";

interface JsonSchema {
  readonly $schema?: string;
  readonly $id?: string;
  readonly $ref?: string;
  readonly $defs?: Readonly<Record<string, JsonSchema>>;
  readonly title?: string;
  readonly description?: string;
  readonly type?: JsonType | readonly JsonType[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly default?: unknown;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | JsonSchema;
  readonly propertyNames?: JsonSchema;
  readonly maxProperties?: number;
  readonly items?: JsonSchema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly minimum?: number;
  readonly exclusiveMinimum?: number;
  readonly maximum?: number;
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
  readonly discriminator?: {
    readonly propertyName: string;
  };
  readonly [OWN]?: Own;
}

type JsonType = "object" | "array" | "string" | "number" | "integer" | "boolean" | "null";

type Keyword =
  | "const"
  | "enum"
  | "type"
  | "minLength"
  | "maxLength"
  | "pattern"
  | "minimum"
  | "exclusiveMinimum"
  | "maximum"
  | "minItems"
  | "maxItems"
  | "maxProperties"
  | "oneOf";

interface LimitHit {
  limit: "wall" | "cost" | "turns" | "idle";
  nodeId: string;
  allowed: number;
  used?: number;
}

interface LimitsSpec {
  wall?: Duration;
  costUsd?: number;
  turns?: number;
  idle?: Duration;
}

interface McpConnection {
  readonly closed: Promise<void>;
  close(): Promise<void>;
}

type McpMessage = object;

interface McpServer extends AsyncDisposable {
  connect(transport: McpTransport): McpConnection;
  fetch(request: Request, owner: string): Promise<Response>;
  close(): Promise<void>;
}

interface McpServerOptions {
  sandbox?: OpenOptions;
  open?(options: OpenOptions): Promise<Sandbox>;
  tools?: readonly ToolGroup[];
  multi?: boolean;
  offers?: SandboxOffers;
  structured?: boolean;
  ansi?: boolean;
  maxOutput?: number;
  maxCalls?: number;
  maxSandboxes?: number;
  push?: {
    readonly token: string;
    readonly server?: string;
  };
  runs?: RunOffer;
  onError?(error: Error): void;
}

interface McpTransport {
  onmessage?: ((message: never) => void) | undefined;
  onclose?: (() => void) | undefined;
  onerror?: ((error: Error) => void) | undefined;
  start(): Promise<void>;
  send(message: never): Promise<void>;
  close(): Promise<void>;
}

type MoreNames = Readonly<Record<string, Readonly<Record<string, Value>>>>;

interface Needed<T> {
  readonly needed: Schema<T>;
  readonly absent?: string | undefined;
}

interface NodeAttempt {
  attempt: number;
  status: NodeStatus;
  durationMs: number;
  error?: RunError;
  costUsd?: number | null;
}

interface NodeBase {
  readonly kind: NodeKind;
  readonly id: string;
  readonly name: string;
  readonly description?: string;
  readonly when?: Condition;
  readonly needs: readonly string[];
  readonly timeout?: number;
  readonly retry: RetryPolicy;
  readonly continueOnError: boolean;
  readonly env: Readonly<Record<string, Text>>;
  readonly cwd?: string;
  readonly secrets: readonly string[];
}

type NodeFunction = (
  context: RunContext,
  sandbox: Sandbox,
  signal: AbortSignal,
) => Promise<Partial<NodeResult> | undefined> | Partial<NodeResult> | undefined;

type NodeKind = "command" | "agent" | "gate" | "commit";

interface NodeKindModule<Spec extends AnySpec = AnySpec, Node extends NodeBase = NodeBase> {
  readonly name: Node["kind"];
  readonly aliases: readonly Spec["kind"][];
  readonly properties: Fields<Written<Omit<Spec, keyof AnySpec>>>;
  readonly harmless: readonly string[];
  readonly reaches?: Readonly<Record<string, HostWish>>;
  readonly renamed?: Readonly<Record<string, string>>;
  readonly names?: {
    readonly group: string;
    readonly fields: readonly string[];
    readonly where: string;
  };
  readonly expectsChanges?: boolean;
  normalize(spec: Spec, place: FieldPath, report: ReportFault): Omit<Node, keyof NodeBase>;
  textsOf(node: Node): readonly NodeText[];
  agentOf?(node: Node): AgentUse | undefined;
  preflight?(nodes: readonly Node[], state: RunView): Promise<void>;
  run(run: NodeRun, node: Node): Promise<NodeOutcome>;
}

type NodeOutcome = StepOutcome & Partial<NodeReport>;

interface NodeOutput {
  nodeId: string;
  parentId?: string;
  checkId?: string;
  stream: OutputStream;
  bytes: Uint8Array;
}

interface NodeReport extends NodeResult, CommandSetting {
  id: string;
  name: string;
  kind: NodeKind;
  attempt: number;
  attempts?: NodeAttempt[];
  startedAt: string;
  outputTruncated: boolean;
  exitCode?: number;
  reason?: string;
  command?: string;
  tolerated?: boolean;
  reused?: boolean;
  agent?: AgentReport;
  checks?: CheckResult[];
  rounds?: number;
  commit?: string;
  children?: NodeReport[];
  stdoutPath?: string;
  stderrPath?: string;
}

interface NodeResult {
  status: NodeStatus;
  output: string;
  durationMs: number;
  error?: RunError;
}

interface NodeRun {
  readonly state: RunView;
  step(
    step: Step,
    ids: {
      nodeId: string;
      checkId?: string;
    },
  ): Promise<StepOutcome & PrintedOutput>;
  agent(job: AgentJob): Promise<AgentOutcome>;
  child(
    node: Pick<NodeReport, "id" | "name" | "kind">,
    opts: {
      readonly retry: RetryPolicy;
      readonly parentId: string;
    },
    run: () => Promise<NodeOutcome>,
  ): Promise<NodeReport>;
  print(nodeId: string, stream: OutputStream, text: string): Promise<PrintedOutput>;
  renderMessage(text: Text): Promise<string>;
}

type NodeSpec = PartsOf<(typeof TABLE)[NodeKind]>["spec"];

interface NodeSpecBase extends Partial<Pick<NodeBase, AsWritten>> {
  skip?: (context: RunContext) => boolean | Promise<boolean>;
  timeout?: Duration;
  retry?: Partial<Omit<RetryPolicy, "backoff">> & {
    backoff?: Duration;
  };
}

type NodeStatus = "success" | "failure" | "skipped" | "cancelled" | "limit";

interface NodeText {
  readonly place: FieldPath;
  readonly text: string;
  readonly as: "template" | "condition" | "script";
  readonly group?: string;
}

declare const OWN: unique symbol;

type OutputStream = "stdout" | "stderr" | "transcript";

interface Own {
  readonly expected?: string | Partial<Readonly<Record<Keyword, string>>>;
  readonly check?: Check;
  readonly rule?: Check;
  readonly incomplete?: string;
  readonly absent?: Readonly<Record<string, string>>;
  readonly elsewhere?: Readonly<Record<string, string>>;
  readonly also?: readonly string[];
  readonly target?: () => JsonSchema;
}

type PartsOf<M> =
  M extends NodeKindModule<infer Spec, infer Node>
    ? {
        spec: Spec;
        node: Node;
      }
    : never;

type PrWith = "rest" | "gh";

interface PrintedOutput {
  output: string;
  outputTruncated: boolean;
}

type PushOn = "success" | "limit" | "always";

interface PushResult {
  pushed: boolean;
  prUrl?: string;
  error?: string;
  state?: PushState;
  draft?: boolean;
  existing?: boolean;
  tree?: string;
  commit?: string;
}

type PushState = "not_requested" | "not_allowed" | "no_token" | "no_changes" | "push_failed" | "pr_failed" | "ok";

interface RepairOptions {
  readonly env: Readonly<Record<string, Text>>;
  readonly secrets: readonly string[];
  readonly max: number;
  readonly stopIfNoChange: boolean;
}

interface RepairSpec extends Omit<AgentTaskSpec, "prompt">, Partial<RepairOptions> {
  prompt?: Text;
}

type ReportFault = (fault: Fault) => void;

interface Reporter {
  nodeStart?(name: string, kind: NodeKind): void | Promise<void>;
  nodeOutput?(name: string, chunk: string): void | Promise<void>;
  nodeBytes?(output: NodeOutput): void | Promise<void>;
  nodeComplete?(name: string, result: NodeReport): void | Promise<void>;
  runComplete?(report: RunReport): void | Promise<void>;
  event?(event: RunEvent): void | Promise<void>;
}

type RetryCause = "rate_limit" | "network" | "crash" | "unavailable";

interface RetryPolicy {
  readonly max: number;
  readonly backoff: number;
  readonly on: readonly RetryCause[];
}

interface RunContext {
  readonly runId: string;
  readonly blueprint: string;
  readonly workDir: string;
  readonly intent: string;
  readonly repo: string;
  readonly branch: string;
  readonly push: boolean;
  readonly sandboxType: string;
  readonly specPath?: string;
  readonly spec?: string;
  readonly inputs: Readonly<Record<string, string | number | boolean>>;
  readonly env: Readonly<Record<string, string>>;
  readonly results: Record<string, NodeReport>;
}

interface RunCost {
  usd: number | null;
  unpriced: string[];
}

interface RunError {
  code: string;
  message: string;
  retryable: boolean;
  hint?: string;
}

type RunEvent = {
  v: 1;
  seq: number;
  ts: string;
  runId: string;
} & RunEventBody;

type RunEventBody =
  | {
      type: "run.started";
      blueprint: string;
      repo: string;
      intent: string;
      nodes: {
        id: string;
        kind: NodeKind;
      }[];
    }
  | {
      type: "sandbox.creating";
      backend: string;
    }
  | {
      type: "sandbox.ready";
      backend: string;
      sandboxId: string;
      workDir: string;
    }
  | {
      type: "sandbox.lost";
      message: string;
    }
  | {
      type: "sandbox.destroyed";
      kept: boolean;
    }
  | {
      type: "node.started";
      nodeId: string;
      parentId?: string;
      name: string;
      kind: NodeKind;
      attempt: number;
    }
  | {
      type: "node.skipped";
      nodeId: string;
      parentId?: string;
      name: string;
      kind: NodeKind;
      reason: string;
    }
  | {
      type: "node.output";
      nodeId: string;
      parentId?: string;
      stream: OutputStream;
      text: string;
      checkId?: string;
    }
  | {
      type: "node.finished";
      nodeId: string;
      parentId?: string;
      result: NodeReport;
    }
  | {
      type: "agent.version";
      agent: string;
      version: string;
    }
  | {
      type: "agent.message";
      nodeId: string;
      parentId?: string;
      text: string;
    }
  | {
      type: "agent.tool_call";
      nodeId: string;
      parentId?: string;
      tool: string;
      summary: string;
    }
  | {
      type: "agent.tool_result";
      nodeId: string;
      parentId?: string;
      tool?: string;
      isError: boolean;
    }
  | {
      type: "agent.usage";
      nodeId: string;
      parentId?: string;
      usage: TokenUsage;
      costUsd: number | null;
      turns: number;
    }
  | {
      type: "gate.check";
      nodeId: string;
      round: number;
      check: CheckResult;
    }
  | {
      type: "retry.scheduled";
      nodeId: string;
      parentId?: string;
      reason: string;
      delayMs: number;
      attempt: number;
    }
  | {
      type: "limit.warning";
      limit: LimitHit["limit"];
      nodeId: string;
      allowed: number;
      used: number;
    }
  | ({
      type: "limit.hit";
    } & LimitHit)
  | {
      type: "checkpoint.saved";
      nodeId: string;
      snapshotId?: string;
    }
  | {
      type: "warning";
      message: string;
      nodeId?: string;
    }
  | {
      type: "push.finished";
      result: PushResult;
    }
  | {
      type: "run.finished";
      status: RunStatus;
      exitCode: number;
      error?: RunError;
      totalDurationMs: number;
    };

interface RunLimits {
  readonly wall: number;
  readonly costUsd?: number;
  readonly turns?: number;
  readonly idle: number;
}

interface RunOffer
  extends Omit<
    HarnessOptions,
    keyof WantedRun | "runId" | "reporter" | "signal" | "push" | "pushOn" | "draft" | "prWith"
  > {
  blueprints?: readonly string[];
  maxRuns?: number;
}

interface RunReport {
  schemaVersion: 1;
  runId: string;
  blueprint: string;
  repo: string;
  intent: string;
  status: RunStatus | "running";
  exitCode: number;
  nodes: NodeReport[];
  startedAt: string;
  finishedAt?: string;
  totalDurationMs: number;
  tokenUsage: TokenUsage;
  cost: RunCost;
  limitsHit: LimitHit[];
  push: boolean;
  branch?: string;
  base?: string;
  baseCommit?: string;
  headCommit?: string;
  tree?: string;
  pushResult?: PushResult;
  changes?: ChangeSummary;
  sandbox?: {
    type: string;
    id: string;
    image?: string;
    kept: boolean;
  };
  secrets?: SecretReport[];
  error?: RunError;
  warnings: string[];
  version: string;
  resumedFrom?: string;
}

type RunStatus = "success" | "failed" | "no_changes" | "limit" | "cancelled" | "error";

interface RunView {
  readonly sandbox: Sandbox;
  readonly signal: AbortSignal;
  readonly stopped: "cancelled" | "wall" | undefined;
  sandboxLost: boolean;
  emit(event: RunEventBody): Promise<void>;
  hide(text: string, maxBytes?: number): string;
}

interface RunnableSpec {
  run?: readonly Text[];
  shell?: string;
  exec?: NodeFunction;
}

interface SandboxOffers {
  readonly backends?: readonly string[];
  readonly images?: readonly string[];
  readonly repos?: readonly string[];
}

interface Schema<T> extends JsonSchema {
  readonly [TYPE]: (value: T) => T;
}

interface SecretReport {
  name: string;
  kept: "outside" | "inside";
  hosts?: string[];
  why?: string;
}

interface SessionTotals {
  usage: TokenUsage;
  costUsd?: number;
}

interface Step extends Readonly<RunnableSpec> {
  readonly timeout?: number;
  readonly cwd?: string;
  readonly env: Readonly<Record<string, Text>>;
  readonly secrets: readonly string[];
}

interface StepOutcome extends CommandSetting {
  status: NodeStatus;
  exitCode?: number;
  timedOut?: boolean;
  error?: RunError;
  command?: string;
  output?: string;
}

declare const TABLE: {
  readonly command: typeof commandKind;
  readonly agent: typeof agentKind;
  readonly gate: typeof gateKind;
  readonly commit: typeof commitKind;
};

declare const TOOL_GROUPS: readonly ["browse", "git", "snapshot", "ports", "runs"];

declare const TYPE: unique symbol;

type Text = string | ((context: RunContext) => string);

interface TokenUsage {
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
}

type ToolGroup = (typeof TOOL_GROUPS)[number];

type Value = string | number | boolean | null;

interface WantedRun {
  readonly blueprint: string;
  readonly intent: string;
  readonly inputs?: Readonly<Record<string, string | number | boolean>>;
}

type Written<T> = T extends AgentDriver | ((...args: never) => unknown)
  ? never
  : T extends readonly (infer I)[]
    ? readonly Written<I>[]
    : T extends object
      ? { [K in keyof T as [Written<Exclude<T[K], undefined>>] extends [never] ? never : K]: Written<T[K]> }
      : T;

declare const agentKind: NodeKindModule<AgentSpec, AgentNode>;

declare function clientConfig(options: InstallOptions, entry: ClientEntry): string;

declare const commandKind: NodeKindModule<CommandSpec, CommandNode>;

declare const commitKind: NodeKindModule<CommitSpec, CommitNode>;

declare function createMcpServer(options?: McpServerOptions): Promise<McpServer>;

declare const gateKind: NodeKindModule<GateSpec, GateNode>;

declare function installClient(options: InstallOptions, entry: ClientEntry): Promise<InstallReport>;

declare function removeClient(options: InstallOptions): Promise<InstallReport>;

declare function serveHttp(mcp: McpServer, options: HttpOptions): Promise<HttpServer>;

declare function serveStdio(server: McpServer): McpConnection;

export {
  CLIENTS,
  type ClientEntry,
  type ClientName,
  type HttpOptions,
  type HttpServer,
  type InstallOptions,
  type InstallReport,
  type McpConnection,
  type McpMessage,
  type McpServer,
  type McpServerOptions,
  type McpTransport,
  type RunOffer,
  type SandboxOffers,
  TOOL_GROUPS,
  type ToolGroup,
  clientConfig,
  createMcpServer,
  installClient,
  removeClient,
  serveHttp,
  serveStdio,
};

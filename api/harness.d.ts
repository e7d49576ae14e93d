interface AgentAccess {
  readonly network: readonly string[];
  readonly secrets: readonly (readonly string[])[];
  readonly keys?: Readonly<Record<string, AgentKey>>;
  readonly logins?: Readonly<Record<string, readonly string[]>>;
}

interface AgentChoice {
  readonly agents?: Readonly<Record<string, AgentDriver>>;
  readonly agent?: string;
  readonly model?: string;
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

interface AgentNeed {
  readonly nodeId: string;
  readonly task: AgentTask;
  readonly driver: AgentDriver;
  readonly access: AgentAccess;
  readonly setting: AgentSetting;
  readonly logins: readonly string[];
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

interface ApplyResult {
  readonly directory: string;
  readonly files: readonly string[];
  readonly conflicts: readonly string[];
}

type AsWritten = "id" | "name" | "description" | "when" | "needs" | "continueOnError" | "env" | "cwd" | "secrets";

declare const BLUEPRINT_SCHEMA: JsonSchema;

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

interface BlueprintFault {
  readonly path: string;
  readonly message: string;
  readonly file?: string;
  readonly line?: number;
  readonly column?: number;
}

interface BlueprintNeeds {
  readonly network: NetworkPolicy;
  readonly secrets: readonly SecretNeed[];
  readonly agents: readonly AgentNeed[];
}

type BlueprintNode = PartsOf<(typeof TABLE)[NodeKind]>["node"];

type BlueprintOrigin = "path" | "repository" | "user" | "built-in";

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

declare const EXIT_CODES: {
  readonly success: 0;
  readonly failed: 1;
  readonly usage: 2;
  readonly environment: 3;
  readonly push: 4;
  readonly limit: 5;
  readonly noChanges: 6;
  readonly interrupted: 130;
  readonly terminated: 143;
};

interface EngineOptions extends AgentChoice {
  readonly sandbox: Sandbox;
  readonly context: RunContext;
  readonly limits?: Partial<RunLimits>;
  readonly secrets?: Readonly<Record<string, string>>;
  readonly onEvent: EventSink;
  readonly onOutput?: (output: NodeOutput) => void | Promise<void>;
  readonly wallLeft?: number;
  readonly signal?: AbortSignal;
  readonly network?: NetworkPolicy;
  readonly sandboxEnv?: Readonly<Record<string, string>>;
  readonly installs?: readonly InstallStep[];
  readonly startAt?: string | null;
  readonly lostSessions?: readonly string[];
  readonly until?: string;
  readonly checkpoint?: (at: { node: NodeReport; index: number }) => Promise<void>;
}

type EventSink = (event: RunEventBody) => void | Promise<void>;

interface Fault {
  readonly place: FieldPath;
  readonly message: string;
  readonly isKey?: boolean;
}

type FieldPath = readonly (string | number)[];

type Fields<T> = {
  readonly [K in keyof T]-?: Partial<Pick<T, K>> extends Pick<T, K> ? Schema<Exclude<T[K], undefined>> : Needed<T[K]>;
};

interface FindOptions {
  readonly repoDir?: string | undefined;
  readonly cwd?: string | undefined;
  readonly env?: Readonly<Record<string, string | undefined>>;
}

interface FoundBlueprint {
  readonly name: string;
  readonly path: string;
  readonly origin: BlueprintOrigin;
}

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

interface GcReport {
  removed: string[];
  left: string[];
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

interface InputSpec {
  readonly type: "string" | "number" | "boolean";
  readonly description?: string;
  readonly required: boolean;
  readonly default?: string | number | boolean;
}

interface InstallPlan {
  readonly steps: readonly InstallStep[];
  readonly notes: readonly string[];
}

interface InstallStep {
  readonly id: string;
  readonly lockfile?: string;
  readonly run: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly reach: readonly string[];
  readonly hasSecret: boolean;
  readonly fills?: string;
}

interface InstalledAgent {
  readonly name: string;
  readonly path?: string;
  readonly version?: string;
  readonly tried: readonly string[];
  readonly problem?: string;
  readonly install: string;
}

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

type KindWord = NodeSpec["kind"];

interface LandOptions {
  readonly branch: string;
  readonly repo?: string;
  readonly expected?: string;
}

interface LandResult {
  readonly branch: string;
  readonly commit: string;
  readonly gitDir: string;
  readonly files: readonly string[];
}

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

interface LoadOptions extends FindOptions {
  readonly trust?: boolean | undefined;
  readonly inspect?: boolean | undefined;
}

type MoreNames = Readonly<Record<string, Readonly<Record<string, Value$1>>>>;

interface NameSet {
  readonly name: string;
  readonly for: "agents" | "packages";
  readonly allow: readonly string[];
  readonly reason?: string;
}

interface Needed<T> {
  readonly needed: Schema<T>;
  readonly absent?: string | undefined;
}

interface NeedsChoice extends AgentChoice {
  readonly limits?: Partial<RunLimits>;
  readonly env?: Readonly<Record<string, string>>;
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

type NodeKindAlias = Exclude<KindWord, NodeKind>;

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

interface OpenDirectory extends Disposable {
  readonly path: string;
  at(name: string): string;
  close(): void;
}

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

interface PreparedRun {
  readonly blueprint: Blueprint;
  readonly plan: RunPlan;
  readonly source: SourceRepository;
  readonly secrets: Readonly<Record<string, string>>;
  readonly sandboxOptions: SandboxOptions;
  readonly spec?: string;
  readonly warnings: readonly string[];
}

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

interface ResumeOptions
  extends Pick<
    HarnessOptions,
    "reporter" | "githubToken" | "daytona" | "secretSource" | "agents" | "limits" | "signal" | "trust"
  > {
  runId: string;
  from?: string;
  sandbox?: HarnessOptions["sandbox"];
  env?: HarnessOptions["env"];
  blueprint?: HarnessOptions["blueprint"];
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

interface RunDirectory {
  readonly runId: string;
  readonly path: string;
  at(...parts: string[]): string;
  state(...parts: string[]): string;
  open(
    folders?: readonly string[],
    opts?: {
      make?: number;
    },
  ): OpenDirectory;
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

interface RunOutcome {
  status: Exclude<RunStatus, "no_changes">;
  nodes: NodeReport[];
  tokenUsage: TokenUsage;
  cost: RunCost;
  limitsHit: LimitHit[];
  warnings: string[];
  durationMs: number;
  endedBy?: string;
  error?: RunError;
  sandboxLost: boolean;
}

interface RunPlan
  extends Pick<
    HarnessOptions,
    "ref" | "base" | "prWith" | "agent" | "model" | "inputs" | "env" | "limits" | "from" | "until" | "specPath"
  > {
  readonly version: 1;
  readonly runId: string;
  readonly createdAt: string;
  readonly gloveboxVersion: string;
  readonly nodeVersion: string;
  readonly backend: string;
  readonly repo: string;
  readonly sandboxRepo: string;
  readonly gitDir?: string;
  readonly baseCommit?: string;
  readonly remoteUrl?: string;
  readonly branch: string;
  readonly intent: string;
  readonly push: boolean;
  readonly pushOn: NonNullable<HarnessOptions["pushOn"]>;
  readonly draft: boolean;
  readonly keep: NonNullable<HarnessOptions["keep"]>;
  readonly sandbox: WrittenOptions;
  readonly secrets?: readonly SecretReport[];
  readonly installs?: readonly InstallStep[];
  readonly copies?: readonly string[];
  readonly again?: readonly string[];
  readonly envAgain?: readonly string[];
  readonly blueprint: {
    readonly name: string;
    readonly source?: string;
    readonly sha256: string;
    readonly document?: Blueprint;
  };
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

type RunState = RunReport["status"] | "interrupted" | "unknown";

type RunStatus = "success" | "failed" | "no_changes" | "limit" | "cancelled" | "error";

interface RunSummary {
  runId: string;
  state: RunState;
  path: string;
  blueprint?: string;
  repo?: string;
  intent?: string;
  startedAt?: string;
  totalDurationMs?: number;
  prUrl?: string;
}

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

interface Schema<T> extends JsonSchema {
  readonly [TYPE]: (value: T) => T;
}

interface SecretNeed {
  readonly nodeId: string;
  readonly names: readonly string[];
  readonly access?: AgentAccess;
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

interface SourceRepository {
  readonly repo: string;
  readonly topLevel?: string;
  readonly gitDir?: string;
  readonly baseCommit?: string;
  readonly remoteUrl?: string;
  readonly warnings: readonly string[];
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

declare const TYPE: unique symbol;

type Text = string | ((context: RunContext) => string);

interface TokenUsage {
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
}

type Value = string | number | boolean;

type Value$1 = string | number | boolean | null;

type Written<T> = T extends AgentDriver | ((...args: never) => unknown)
  ? never
  : T extends readonly (infer I)[]
    ? readonly Written<I>[]
    : T extends object
      ? { [K in keyof T as [Written<Exclude<T[K], undefined>>] extends [never] ? never : K]: Written<T[K]> }
      : T;

type WrittenOptions = Omit<
  SandboxOptions,
  "env" | "signal" | "onEvent" | "onBlocked" | "githubToken" | "repo" | "id" | "ifExists" | "keep"
>;

declare function agent$1(spec: Omit<AgentSpec, "kind">): AgentSpec;

declare const agentKind: NodeKindModule<AgentSpec, AgentNode>;

declare function agentNames(): string[];

declare function agentic(spec: Omit<AgentSpec, "kind">): AgentSpec;

declare function applyRun(runId: string, into?: string): Promise<ApplyResult>;

declare function assertConfined(blueprint: Blueprint, wishes: readonly string[]): void;

declare function blueprint$1(spec: BlueprintSpec): Blueprint;

declare function blueprintError(faults: readonly BlueprintFault[]): SandboxError;

declare function changesOf(runId: string): Promise<Changes>;

declare function codeHashOf(blueprint: Blueprint): string | undefined;

declare function command(spec: Omit<CommandSpec, "kind">): CommandSpec;

declare const commandKind: NodeKindModule<CommandSpec, CommandNode>;

declare function commit(spec: Omit<CommitSpec, "kind">): CommitSpec;

declare const commitKind: NodeKindModule<CommitSpec, CommitNode>;

declare function defineBlueprint(spec: BlueprintSpec): Blueprint;

declare function deterministic(spec: Omit<CommandSpec, "kind">): CommandSpec;

declare function findBlueprint(name: string, options?: FindOptions): FoundBlueprint;

declare function findInstalledAgents(signal?: AbortSignal): Promise<InstalledAgent[]>;

declare function findNameSet(name: string, signal?: AbortSignal): Promise<NameSet>;

declare function findRunDirectory(runId: string): Promise<RunDirectory>;

declare function formatChanges(changes: Pick<ChangeSummary, "files" | "insertions" | "deletions">): string;

declare function formatCost(cost: number | null | undefined): string;

declare function formatDuration(ms: number): string;

declare function formatRunCost({ usd, unpriced }: RunCost): string | undefined;

declare function formatSecrets(secrets?: readonly SecretReport[]): string | undefined;

declare function formatTokens(count: number): string;

declare function gate(spec: Omit<GateSpec, "kind">): GateSpec;

declare const gateKind: NodeKindModule<GateSpec, GateNode>;

declare function gcRuns(opts: { olderThan: number; dryRun?: boolean; signal?: AbortSignal }): Promise<GcReport>;

declare function isBlueprint(value: unknown): value is Blueprint;

declare function isConfined(blueprint: Blueprint): boolean;

declare function isDocument(path: string): boolean;

declare function isNameSet(name: string): boolean;

declare function isRun(runId: string): Promise<boolean>;

declare function isRunning(directory: RunDirectory): Promise<boolean>;

declare function landRun(runId: string, { branch, repo, expected }: LandOptions): Promise<LandResult>;

declare function listBlueprints({ repoDir, cwd, env }?: FindOptions): FoundBlueprint[];

declare function listNameSets(signal?: AbortSignal): Promise<NameSet[]>;

declare function listRuns(): Promise<RunSummary[]>;

declare function loadBlueprint(name: string, options?: LoadOptions): Promise<Blueprint>;

declare function loadFound(found: FoundBlueprint, options?: LoadOptions): Promise<Blueprint>;

declare function needsOf(blueprint: Blueprint, choice?: NeedsChoice): BlueprintNeeds;

declare function nextCommands({ runId, status, nodes, sandbox, changes, pushResult }: RunReport): string[];

declare function nodeThatNeedsSpec({ nodes }: Pick<Blueprint, "nodes">): string | undefined;

declare function preflight(spec: Omit<CommandSpec, "kind">): CommandSpec;

declare function prepareRun(options: HarnessOptions, startedAt?: number): Promise<PreparedRun>;

declare function pullRequestBody(report: RunReport): string;

declare function pullRequestTitle(intent: string): string;

declare function pushRunAgain(
  runId: string,
  opts: {
    githubToken: string | undefined;
    draft?: boolean;
    base?: string;
    prWith?: PrWith;
    signal?: AbortSignal;
  },
): Promise<PushResult>;

declare function readBlueprint(
  text: string,
  file: string,
): Promise<{
  blueprint?: Blueprint;
  faults: readonly BlueprintFault[];
}>;

declare function readEvents(path: string): RunEvent[];

declare function readFound({ path, origin }: FoundBlueprint): Uint8Array;

declare function readReport(directory: RunDirectory): Promise<RunReport | undefined>;

declare function removeRun(runId: string): Promise<void>;

declare function reportHtml(report: RunReport, patch: string): string;

declare function reportMarkdown(report: RunReport): string;

declare function resolveInputs({ inputs }: Blueprint, given?: Readonly<Record<string, Value>>): Record<string, Value>;

declare function resolveSecrets(
  needs: Pick<BlueprintNeeds, "secrets">,
  source: Readonly<Record<string, string | undefined>>,
  elsewhere?: readonly string[],
): Record<string, string>;

declare function resumeRun(options: ResumeOptions): Promise<RunReport>;

declare function runBlueprint(blueprint: Blueprint, options: EngineOptions): Promise<RunOutcome>;

declare function runHarness(options: HarnessOptions): Promise<RunReport>;

declare function sandboxOptionsOf(blueprint: Blueprint, needs: Pick<BlueprintNeeds, "network">): SandboxOptions;

declare function showFault({ file, line, column, path, message }: BlueprintFault): string;

declare function stateOfRun(directory: RunDirectory, report: RunReport | undefined): Promise<RunState>;

declare function stopRun(
  runId: string,
  opts?: {
    timeout?: number;
  },
): Promise<RunReport>;

declare function trustNote(blueprint: Blueprint): string | undefined;

declare function validate(spec: Omit<GateSpec, "kind">): GateSpec;

export {
  AgentAccess,
  AgentChoice,
  AgentCommand,
  AgentDialog,
  AgentDriver,
  AgentFailure,
  AgentHost,
  AgentKey,
  AgentMcpServer,
  AgentNeed,
  AgentNode,
  AgentProvider,
  AgentReader,
  AgentReport,
  AgentRequest,
  AgentSetting,
  AgentSignal,
  AgentSpec,
  type AgentTask,
  type AgentTaskSpec,
  AgentVerdict,
  ApplyResult,
  BLUEPRINT_SCHEMA,
  Blueprint,
  BlueprintFault,
  BlueprintNeeds,
  BlueprintNode,
  BlueprintOrigin,
  BlueprintSandbox,
  BlueprintSpec,
  ChangeSummary,
  CheckResult,
  type CheckSpec,
  CommandNode,
  CommandSetting,
  CommandSpec,
  CommitNode,
  CommitSpec,
  Condition,
  Duration,
  EXIT_CODES,
  EngineOptions,
  EventSink,
  FindOptions,
  FoundBlueprint,
  type GateCheck,
  type GateNode,
  type GateRepair,
  type GateSpec,
  GcReport,
  HarnessOptions,
  HomeFile,
  InputSpec,
  type InstallPlan,
  type InstallStep,
  type InstalledAgent,
  KindWord,
  LandOptions,
  LandResult,
  LimitHit,
  LimitsSpec,
  LoadOptions,
  type NameSet,
  NeedsChoice,
  NodeAttempt,
  NodeBase,
  NodeFunction,
  NodeKind,
  NodeKindAlias,
  NodeOutput,
  NodeReport,
  NodeResult,
  NodeSpec,
  NodeSpecBase,
  NodeStatus,
  OutputStream,
  PrWith,
  PreparedRun,
  PushOn,
  PushResult,
  PushState,
  type RepairSpec,
  Reporter,
  ResumeOptions,
  RetryCause,
  RetryPolicy,
  RunContext,
  RunCost,
  type RunDirectory,
  RunError,
  RunEvent,
  RunEventBody,
  RunLimits,
  RunOutcome,
  RunReport,
  type RunState,
  RunStatus,
  type RunSummary,
  type RunnableSpec,
  SecretNeed,
  SecretReport,
  SessionTotals,
  Text,
  TokenUsage,
  agent$1 as agent,
  agentNames,
  agentic,
  applyRun,
  assertConfined,
  blueprint$1 as blueprint,
  blueprintError,
  changesOf,
  codeHashOf,
  command,
  commit,
  defineBlueprint,
  deterministic,
  findBlueprint,
  findInstalledAgents,
  findNameSet,
  findRunDirectory,
  formatChanges,
  formatCost,
  formatDuration,
  formatRunCost,
  formatSecrets,
  formatTokens,
  gate,
  gcRuns,
  isBlueprint,
  isConfined,
  isDocument,
  isNameSet,
  isRun,
  isRunning,
  landRun,
  listBlueprints,
  listNameSets,
  listRuns,
  loadBlueprint,
  loadFound,
  needsOf,
  nextCommands,
  nodeThatNeedsSpec,
  preflight,
  prepareRun,
  pullRequestBody,
  pullRequestTitle,
  pushRunAgain,
  readBlueprint,
  readEvents,
  readFound,
  readReport,
  removeRun,
  reportHtml,
  reportMarkdown,
  resolveInputs,
  resolveSecrets,
  resumeRun,
  runBlueprint,
  runHarness,
  sandboxOptionsOf,
  showFault,
  stateOfRun,
  stopRun,
  trustNote,
  validate,
};

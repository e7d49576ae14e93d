import { SandboxError } from "../../../contracts/errors.js";
import { defined } from "../../util/defined.js";
import type { Fields, Schema } from "../../util/schema.js";
import * as is from "../../util/schema.js";
import { type FieldPath, fields, type ReportFault, slugOf, toMs, type Written } from "../schema.js";
import { HARMLESS_TASK_FIELDS, REACHING_TASK_FIELDS, TASK_FIELDS, textsOfTask, toTask } from "./agent-task.js";
import {
  type CheckSpec,
  GATE_NAMES,
  type GateCheck,
  type GateNode,
  type GateRepair,
  type GateSpec,
  type RepairSpec,
} from "./gate/gate-node.js";
import { runGate } from "./gate/run-gate.js";
import { wishForSecrets } from "./host-wish.js";
import type { NodeKindModule } from "./kind.js";
import { textsIn } from "./node-text.js";
import { checkRunnable, RUNNABLE, textsOfRunnable } from "./runnable.js";

export type { CheckSpec, GateCheck, GateNode, GateRepair, GateSpec, RepairSpec } from "./gate/gate-node.js";

const DEFAULT_ROUNDS = 2;
const REPAIR_PROMPT = `{{ intent }}

The work on this is not done: the checks below fail. Fix the cause in the code, not the checks.

{{ gate.failures }}`;

const { id, name, duration: timeout, variables: env, cwd, secrets, texts } = fields;
const rounds = is.scalar("integer", { minimum: 0, maximum: 10 });
const check: Fields<Written<CheckSpec>> = { id, name, ...RUNNABLE, timeout, env, cwd };
const checks: Schema<readonly Written<CheckSpec>[]> = is.list(is.object<Written<CheckSpec>>(check), {
  minItems: 1,
  maxItems: 100,
});
const repair: Schema<Written<RepairSpec>> = is.object({
  ...TASK_FIELDS,
  prompt: fields.text,
  env,
  secrets,
  max: is.noted(rounds, { default: DEFAULT_ROUNDS, description: "How many times it may try." }),
  stopIfNoChange: is.noted(is.flag, { default: true }),
});

/** Checks, and an agent that repairs what is red. */
export const gateKind: NodeKindModule<GateSpec, GateNode> = {
  name: "gate",
  aliases: ["validate"],
  properties: {
    checks,
    steps: checks,
    onFail: repair,
    onFailure: repair,
    maxRetries: rounds,
    protect: is.noted(texts, { description: "Globs of paths that must not be changed." }),
  },
  harmless: [
    "protect",
    ...Object.keys(check).map((field) => `checks[].${field}`),
    ...[...HARMLESS_TASK_FIELDS, "env", "max", "stopIfNoChange"].map((field) => `onFail.${field}`),
  ],
  reaches: {
    "onFail.secrets": wishForSecrets,
    "onFail.agent": REACHING_TASK_FIELDS.agent,
    "onFail.network.allow": REACHING_TASK_FIELDS["network.allow"],
  },
  renamed: {
    steps: "checks",
    onFailure: "onFail",
    maxRetries: "onFail.max",
    "onFail.allowedTools": "onFail.tools",
  },
  names: { group: GATE_NAMES, fields: ["failures", "round"], where: "the prompt of a gate's onFail" },
  normalize(spec, place, report) {
    for (const [name, other] of [
      ["checks", "steps"],
      ["onFail", "onFailure"],
    ] as const) {
      if (spec[name] !== undefined && spec[other] !== undefined) {
        report({ place: [...place, other], message: `is another name of ${name}; give one of them` });
      }
    }
    const specs = spec.checks ?? spec.steps ?? [];
    const protect = spec.protect ?? [];
    if (specs.length === 0 && protect.length === 0) report({ place, message: "has no checks" });
    const onFail = toRepair(spec, place, report);
    return {
      checks: toChecks(specs, [...place, spec.checks === undefined ? "steps" : "checks"], report),
      protect,
      ...defined({ onFail }),
    };
  },
  textsOf({ checks, onFail }) {
    return [
      ...checks.flatMap((check, at) => [
        ...textsOfRunnable(["checks", at], check),
        ...textsIn(["checks", at, "env"], check.env),
      ]),
      ...(onFail === undefined
        ? []
        : [
            ...textsOfTask(["onFail"], onFail).map((text) => ({ ...text, group: GATE_NAMES })),
            ...textsIn(["onFail", "env"], onFail.env),
          ]),
    ];
  },
  agentOf: ({ onFail }) => onFail && { task: onFail, place: ["onFail"], secrets: onFail.secrets, env: onFail.env },
  async preflight(nodes, { sandbox }) {
    const guarded = nodes.find(({ protect }) => protect.length > 0);
    if (guarded === undefined) return;
    try {
      await sandbox.changes();
    } catch (error) {
      const why = `The protected paths of ${guarded.id} cannot be watched: this sandbox cannot report what was changed`;
      const hint = "run on a repository with a backend that has git, or leave protect out";
      throw new SandboxError("unsupported", why, { hint, cause: error });
    }
  },
  run: runGate,
};

/** Checks, and an agent that repairs what is red. */
export function gate(spec: Omit<GateSpec, "kind">): GateSpec {
  return { ...spec, kind: "gate" };
}

/** Another name of `gate`. */
export function validate(spec: Omit<GateSpec, "kind">): GateSpec {
  return { ...spec, kind: "validate" };
}

/** The checks of a gate, each with an id. */
function toChecks(specs: readonly CheckSpec[], place: FieldPath, report: ReportFault): GateCheck[] {
  const ids = new Set<string>();
  return specs.map((spec, at) => {
    const here = [...place, at];
    checkRunnable(spec, here, report);
    const id = spec.id ?? slugOf(spec.name ?? "") ?? `check-${at + 1}`;
    if (ids.has(id)) report({ place: here, message: `the id ${id} is that of another check already` });
    ids.add(id);
    const timeout = toMs(spec.timeout, [...here, "timeout"], report);
    return {
      id,
      env: spec.env ?? {},
      ...defined({ run: spec.run, shell: spec.shell, exec: spec.exec, timeout, cwd: spec.cwd }),
    };
  });
}

/** Who repairs a gate; undefined when nobody does. */
function toRepair(spec: GateSpec, place: FieldPath, report: ReportFault): GateRepair | undefined {
  const repair = spec.onFail ?? spec.onFailure;
  if (repair === undefined) {
    if (spec.maxRetries !== undefined)
      report({ place: [...place, "maxRetries"], message: "needs onFail, which says who repairs" });
    return undefined;
  }
  const field = spec.onFail === undefined ? "onFailure" : "onFail";
  return {
    ...toTask({ ...repair, prompt: repair.prompt ?? REPAIR_PROMPT }, [...place, field], report),
    env: repair.env ?? {},
    secrets: repair.secrets ?? [],
    max: repair.max ?? spec.maxRetries ?? DEFAULT_ROUNDS,
    stopIfNoChange: repair.stopIfNoChange ?? true,
  };
}

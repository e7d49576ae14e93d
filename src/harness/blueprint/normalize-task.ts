import { parseDuration } from "../duration.js";
import type { Fault, Place } from "../schema.js";
import type {
  AgentTask,
  AgentTaskSpec,
  CheckSpec,
  Duration,
  GateCheck,
  GateRepair,
  GateSpec,
  LimitsSpec,
  RunLimits,
  RunnableSpec,
} from "../types.js";

/** Tells what is wrong at a place of the blueprint. */
export type Report = (fault: Fault) => void;

const DEFAULT_ROUNDS = 2;
const REPAIR_PROMPT = `{{ intent }}

The work on this is not done: the checks below fail. Mend the cause in the code, not the checks.

{{ gate.failures }}`;

/** Only the entries that have a value. */
export function defined<T extends object>(record: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const entries = Object.entries(record).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [K in keyof T]?: Exclude<T[K], undefined> };
}

/** A duration in milliseconds; one that is none is reported. */
export function toMs(value: Duration | undefined, place: Place, report: Report): number | undefined {
  if (value === undefined) return undefined;
  const ms = parseDuration(value);
  if (ms === undefined)
    report({ place, message: `${JSON.stringify(value)} is no time; write for example 90s, 10m or 2h` });
  return ms;
}

/** The limits that are given. */
export function toLimits(spec: LimitsSpec = {}, place: Place, report: Report): Partial<RunLimits> {
  return defined({
    wall: toMs(spec.wall, [...place, "wall"], report),
    costUsd: spec.costUsd,
    turns: spec.turns,
    idle: toMs(spec.idle, [...place, "idle"], report),
  });
}

/** How an agent is asked, with its defaults. */
export function toTask(spec: AgentTaskSpec, place: Place, report: Report): AgentTask {
  const { agent = "claude-code", command, output } = spec;
  if (agent === "command" && command === undefined) {
    report({ place, message: "agent: command needs the program in command, for example [node, agent.mjs]" });
  }
  if (agent !== "command" && (command !== undefined || output !== undefined)) {
    const field = command === undefined ? "output" : "command";
    report({ place: [...place, field], message: `${field} is for agent: command only` });
  }
  if (spec.tools !== undefined && spec.allowedTools !== undefined) {
    report({ place: [...place, "allowedTools"], message: "is another name of tools; give one of them" });
  }
  return {
    agent,
    prompt: spec.prompt,
    network: { allow: spec.network?.allow ?? [] },
    limits: toLimits(spec.limits, [...place, "limits"], report),
    ...defined({
      command,
      output,
      systemPrompt: spec.systemPrompt,
      model: spec.model,
      tools: spec.tools ?? spec.allowedTools,
      continue: spec.continue,
    }),
  };
}

/** Holds a step to exactly one of program, script and function. */
export function checkRunnable({ run, shell, exec }: RunnableSpec, place: Place, report: Report): void {
  const given = [run, shell, exec].filter((way) => way !== undefined).length;
  if (given === 1) return;
  report({ place, message: given === 0 ? "has neither run nor shell" : "has both run and shell; give one of them" });
}

/** The checks of a gate, each with an id. */
export function toChecks(specs: readonly CheckSpec[], place: Place, report: Report): GateCheck[] {
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
export function toRepair(spec: GateSpec, place: Place, report: Report): GateRepair | undefined {
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

/** A name as an id; undefined when nothing of it can be one. */
export function slugOf(name: string): string | undefined {
  const slug = name
    .normalize("NFKD")
    .replace(/[^A-Za-z0-9_]+/g, "-")
    .replace(/^[^A-Za-z]+|-+$/g, "")
    .slice(0, 64);
  return slug === "" ? undefined : slug;
}

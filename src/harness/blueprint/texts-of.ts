import type { Place } from "../schema.js";
import type { AgentTask, BlueprintNode, GateCheck, Text } from "../types.js";

/** A text of a node that is more than itself. */
interface NodeText {
  readonly place: Place;
  readonly text: string;
  readonly as: "template" | "condition" | "script";
}

/** Every template, condition and script of a node. Functions are left out: they speak for themselves. */
export function textsOf(node: BlueprintNode): NodeText[] {
  const found: NodeText[] = [];
  const add = (as: NodeText["as"], place: Place, text: unknown): void => {
    if (typeof text === "string") found.push({ place, text, as });
  };
  const addAll = (place: Place, texts: readonly Text[] | Readonly<Record<string, Text>> = []): void => {
    for (const [key, text] of Object.entries(texts)) {
      add("template", [...place, Array.isArray(texts) ? Number(key) : key], text);
    }
  };
  const addTask = (place: Place, { prompt, systemPrompt }: AgentTask): void => {
    add("template", [...place, "prompt"], prompt);
    add("template", [...place, "systemPrompt"], systemPrompt);
  };
  const addRunnable = (place: Place, { run, shell }: Pick<GateCheck, "run" | "shell">): void => {
    addAll([...place, "run"], run);
    add("script", [...place, "shell"], shell);
  };
  add("condition", ["when"], node.when);
  addAll(["env"], node.env);
  if (node.kind === "command") addRunnable([], node);
  if (node.kind === "agent") addTask([], node);
  if (node.kind === "commit") add("template", ["message"], node.message);
  if (node.kind === "gate") {
    for (const [at, check] of node.checks.entries()) {
      addRunnable(["checks", at], check);
      addAll(["checks", at, "env"], check.env);
    }
    if (node.onFail !== undefined) {
      addTask(["onFail"], node.onFail);
      addAll(["onFail", "env"], node.onFail.env);
    }
  }
  return found;
}

import { defined } from "../../util/defined.js";
import type { NodeBase, NodeFunction, NodeSpecBase, Text } from "../node-types.js";
import type { NodeKindModule } from "./kind.js";
import { checkRunnable, RUNNABLE, type RunnableSpec, textsOfRunnable } from "./runnable.js";

export interface CommandSpec extends NodeSpecBase, RunnableSpec {
  kind: "command" | "preflight" | "deterministic";
  /** Another name of `exec`. */
  check?: NodeFunction;
}

export interface CommandNode extends NodeBase, Readonly<RunnableSpec> {
  readonly kind: "command";
}

/** A program, a script or a function. */
export const commandKind: NodeKindModule<CommandSpec, CommandNode> = {
  name: "command",
  aliases: ["preflight", "deterministic"],
  properties: RUNNABLE,
  harmless: Object.keys(RUNNABLE),
  normalize({ run, shell, exec, check }, place, report) {
    const runnable = defined({ run, shell, exec: exec ?? check });
    checkRunnable(runnable, place, report);
    return runnable;
  },
  textsOf: (node) => textsOfRunnable([], node),
  run: ({ step }, node) => step(node, { nodeId: node.id }),
};

/** A program, a script or a function. */
export function command(spec: Omit<CommandSpec, "kind">): CommandSpec {
  return { ...spec, kind: "command" };
}

/** A command that checks whether the run can start. */
export function preflight(spec: Omit<CommandSpec, "kind">): CommandSpec {
  return { ...spec, kind: "preflight" };
}

/** Another name of `command`. */
export function deterministic(spec: Omit<CommandSpec, "kind">): CommandSpec {
  return { ...spec, kind: "deterministic" };
}

/** The node that runs a program before the first one: of `sandbox.setup`, or an installation. */
export function setupNode(id: string, run: readonly Text[], env: Readonly<Record<string, Text>> = {}): CommandNode {
  return {
    ...{ id, name: id, kind: "command", run, needs: [], env, secrets: [], continueOnError: false },
    retry: { max: 0, backoff: 1, on: [] },
  };
}

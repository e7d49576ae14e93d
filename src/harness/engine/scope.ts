import { createPathMatcher } from "../../util/glob.js";
import { toInert } from "../../util/inert-text.js";
import { changedPaths } from "../changed-paths.js";
import type { Scope, Value } from "../expression.js";
import { toInertReferences } from "../github.js";
import type { MoreNames } from "../nodes.js";
import { renderTemplate } from "../template.js";
import type { RunContext, Text } from "../types.js";
import type { EngineState } from "./engine-state.js";

/** What templates and conditions of a run can name. */
export function createScope(state: EngineState, more: MoreNames = {}): Scope {
  const { context } = state;
  return {
    lookUp: (path) => lookUp(context, more, path),
    async changed(globs) {
      const paths = await changedPaths(state.sandbox);
      return globs.length === 0 ? paths.length > 0 : paths.some(createPathMatcher(globs));
    },
  };
}

/** Makes the text that a command or an agent gets. What no command line can contain is taken out. */
export async function renderText(state: EngineState, text: Text, more?: MoreNames): Promise<string> {
  const rendered =
    typeof text === "function" ? text(state.context) : await renderTemplate(text, createScope(state, more));
  return String(rendered).replaceAll("\0", "");
}

/** Makes the message of a commit: what a template fills in notifies nobody, closes nothing and shows all it has. */
export async function renderMessage(state: EngineState, text: Text): Promise<string> {
  if (typeof text === "function") return await renderText(state, text);
  const scope = createScope(state);
  const inert = (value: Value | undefined): Value | undefined =>
    typeof value === "string" ? toInertReferences(toInert(value.replace(/\r\n?/g, "\n"))) : value;
  return await renderTemplate(text, { ...scope, lookUp: (path) => inert(scope.lookUp(path)) });
}

/** As `renderText`, for every value of a record. */
export async function renderAll(
  state: EngineState,
  texts: Readonly<Record<string, Text>>,
  more?: MoreNames,
): Promise<Record<string, string>> {
  const rendered: Record<string, string> = {};
  for (const [name, text] of Object.entries(texts)) rendered[name] = await renderText(state, text, more);
  return rendered;
}

function lookUp(
  context: RunContext,
  more: MoreNames,
  [group = "", name = "", field = ""]: readonly string[],
): Value | undefined {
  const { intent, repo, branch, runId, blueprint, push, workDir, spec, specPath, sandboxType: sandbox } = context;
  const plain = { intent, repo, branch, runId, blueprint, push, workDir, spec, specPath, sandbox };
  if (group === "nodes") return valueIn(fieldsOf(context, name), field);
  if (group === "inputs" || group === "env") return valueIn(context[group], name);
  return valueIn(plain, group) ?? valueIn(more[group] ?? {}, name);
}

/** The fields of a node that can be named. Conditions may also name one that has not run. */
function fieldsOf({ results }: RunContext, id: string): Readonly<Record<string, Value | undefined>> {
  const result = Object.hasOwn(results, id) ? results[id] : undefined;
  const { status = "skipped", output, exitCode, durationMs, commit, error, agent } = result ?? {};
  const { sessionId, costUsd } = agent ?? {};
  return { status, output, exitCode, durationMs, commit, error: error?.message, sessionId, costUsd };
}

function valueIn(values: Readonly<Record<string, Value | undefined>>, name: string): Value | undefined {
  return Object.hasOwn(values, name) ? values[name] : undefined;
}

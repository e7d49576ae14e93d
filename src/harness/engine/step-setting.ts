import { isSecretName } from "../../util/secret-forms.js";
import type { CommandSetting } from "../node-types.js";
import type { EngineState } from "./engine-state.js";

/** Longest value of a variable that a report has. */
const LONGEST_VALUE = 2_000;

/** What to give a command beside its words to run it again. Secrets only by name, and so a value that is too long. */
export function settingOf(
  state: Pick<EngineState, "hide">,
  {
    env,
    secrets,
    cwd,
  }: { env: Readonly<Record<string, string>>; secrets: readonly string[]; cwd?: string | undefined },
): CommandSetting {
  const isShown = ([name, value]: [string, string]): boolean =>
    !secrets.includes(name) && !isSecretName(name) && state.hide(value, LONGEST_VALUE) === value;
  const shown = Object.entries(env).filter(isShown);
  const named = Object.keys(env).filter((name) => !shown.some(([other]) => other === name));
  return {
    ...(cwd !== undefined && { cwd }),
    ...(shown.length > 0 && { env: Object.fromEntries(shown) }),
    ...(named.length > 0 && { hiddenEnv: named }),
  };
}

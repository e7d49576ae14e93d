import { SandboxError } from "../../../contracts/errors.js";
import {
  assertBranchName,
  type Check,
  checkBoolean,
  checkEnv,
  checkOptions,
  checkSignal,
  checkText,
  invalidArgument,
  oneOf,
  type Shape,
} from "../../sandbox/host.js";
import { assertRunId } from "../store.js";
import type { HarnessOptions } from "../types.js";

/** Longest intent: what does not fit into a prompt's head belongs into a file. */
const MAX_INTENT_BYTES = 64 * 1024;

const checkObject: Check = (value, name) => {
  if (typeof value !== "object" || value === null) throw invalidArgument(name, "an object", value);
};
const checkBlueprint: Check = (value, name) => {
  if (typeof value === "string") checkText(value, name);
  else checkObject(value, name);
};
const checkInputs: Check = (value, name) => {
  checkObject(value, name);
  for (const [key, input] of Object.entries(value as object)) {
    if (["string", "number", "boolean"].includes(typeof input)) continue;
    throw invalidArgument(`${name}.${key}`, "a string, a number or a boolean", input);
  }
};

const shape: Shape = new Map<string, Check>([
  ["blueprint", checkBlueprint],
  ["repo", checkText],
  ["intent", (value) => checkIntent(value)],
  ["push", checkBoolean],
  ["pushOn", oneOf("success", "limit", "always")],
  ["draft", checkBoolean],
  ["prWith", oneOf("rest", "gh")],
  ["sandboxType", checkText],
  ["runId", (value) => assertRunId(value as string)],
  ["reporter", checkObject],
  ["specPath", checkText],
  ["githubToken", checkText],
  ["daytona", checkObject],
  ["sandbox", checkObject],
  ["ref", checkText],
  ["branch", (value) => assertBranchName(value)],
  ["base", (value) => assertBranchName(value)],
  ["agent", checkText],
  ["model", checkText],
  ["agents", checkObject],
  ["inputs", checkInputs],
  ["env", checkEnv],
  ["secretSource", checkObject],
  ["limits", checkObject],
  ["from", checkText],
  ["until", checkText],
  ["keep", oneOf("never", "failed", "always")],
  ["out", checkText],
  ["trust", checkBoolean],
  ["signal", checkSignal],
]);

/** Refuses options that are wrong or unknown, before anything is made. */
export function checkHarnessOptions(options: HarnessOptions): void {
  checkOptions(options, shape, "options");
  for (const name of ["blueprint", "repo", "intent"] as const) {
    if (options[name] === undefined) throw invalidArgument(name, "a value", undefined);
  }
}

/** Refuses an intent that is no text for people: empty, endless, or with characters that nobody can see. */
function checkIntent(intent: unknown): void {
  if (typeof intent !== "string" || intent.trim() === "") throw invalidArgument("intent", "a text", intent);
  const size = Buffer.byteLength(intent);
  if (size > MAX_INTENT_BYTES) {
    throw new SandboxError("invalid_argument", `Invalid intent: it has ${size} bytes, at most ${MAX_INTENT_BYTES}`, {
      hint: "put the details into a file and name it as the spec: --spec details.md",
    });
  }
  // biome-ignore lint/suspicious/noControlCharactersInRegex: those are what is looked for
  const control = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]/.exec(intent)?.[0];
  if (control === undefined) return;
  const code = (control.codePointAt(0) ?? 0).toString(16).padStart(4, "0");
  throw new SandboxError("invalid_argument", `Invalid intent: it has the control character U+${code}`, {
    hint: "only line ends and tabs may stand between the words",
  });
}

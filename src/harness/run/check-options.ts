import { SandboxError } from "../../../contracts/errors.js";
import { networkSchema } from "../../sandbox/host.js";
import { assertBranchName } from "../../util/git/branch-name.js";
import * as is from "../../util/schema.js";
import { check, invalidArgument, type Schema } from "../../util/schema.js";
import { assertRunId } from "../store.js";
import type { HarnessOptions } from "../types.js";

/** Longest intent; anything longer belongs in a file. */
const MAX_INTENT_BYTES = 64 * 1024;

/** What others check once they use it. */
function some<T>(): Schema<T> {
  return is.custom(checkObject);
}

function checkObject(value: unknown, name: string): asserts value is object {
  if (typeof value !== "object" || value === null) throw invalidArgument(name, "an object", value);
}

const blueprint = is.custom<HarnessOptions["blueprint"]>((value, name) => {
  if (typeof value === "string") check(value, is.text, name);
  else checkObject(value, name);
});
const inputs = is.custom<NonNullable<HarnessOptions["inputs"]>>((value, name) => {
  checkObject(value, name);
  for (const [key, input] of Object.entries(value)) {
    if (["string", "number", "boolean"].includes(typeof input)) continue;
    throw invalidArgument(`${name}.${key}`, "a string, a number or a boolean", input);
  }
});
const network = networkSchema({ expected: '"none", "full" or { allow: [...] }', least: 0, isHostLoopbackKnown: true });
const branch = is.custom<string>((value) => assertBranchName(value));

const harnessOptions: Schema<HarnessOptions> = is.object({
  blueprint: is.required(blueprint, "a value"),
  repo: is.required(is.text, "a value"),
  intent: is.required(is.custom<string>(checkIntent), "a value"),
  push: is.flag,
  pushOn: is.oneOf("success", "limit", "always"),
  draft: is.flag,
  prWith: is.oneOf("rest", "gh"),
  sandboxType: is.text,
  runId: is.custom((value) => assertRunId(value as string)),
  reporter: some(),
  specPath: is.text,
  githubToken: is.text,
  daytona: some(),
  sandbox: some(),
  sandboxDefaults: some(),
  preferredWorkDir: is.text,
  ref: is.text,
  branch,
  base: branch,
  agent: is.text,
  model: is.text,
  agents: some(),
  inputs,
  env: is.env,
  secretSource: some(),
  limits: some(),
  network,
  install: is.flag,
  copy: is.list(is.text),
  from: is.text,
  until: is.text,
  keep: is.oneOf("never", "failed", "always"),
  out: is.text,
  trust: is.flag,
  signal: is.signal,
});

/** Refuses options that are wrong or unknown, before anything is made. */
export function checkHarnessOptions(options: HarnessOptions): void {
  check(options, harnessOptions, "options");
}

/** Refuses an intent that is empty, too long, or has invisible characters. */
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

import { SandboxError } from "../errors.js";

const ALLOWED = /^[A-Za-z0-9_][A-Za-z0-9._/+#@=-]{0,199}$/;
/** What git forbids in a name, and what it allows but nobody should have to tell from an option, a ref or a revision. */
const FORBIDDEN = /\.\.|\/\/|\/\.|@\{|[/.]$|\.lock(\/|$)|^(HEAD|FETCH_HEAD|ORIG_HEAD|MERGE_HEAD)$|^refs\//;

/** Whether a name can be a branch and nothing else. */
export function isBranchName(branch: unknown): branch is string {
  return typeof branch === "string" && ALLOWED.test(branch) && !FORBIDDEN.test(branch);
}

/** Refuses a name that cannot be a branch, or that could be taken for something else. */
export function assertBranchName(branch: unknown): asserts branch is string {
  if (isBranchName(branch)) return;
  throw new SandboxError("invalid_argument", `Invalid branch ${JSON.stringify(branch)} — not a safe branch name`, {
    hint: "Letters, digits and . _ / + # @ = -, beginning with a letter, digit or _, as git check-ref-format allows.",
  });
}

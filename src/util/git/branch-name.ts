import { SandboxError } from "../../../contracts/errors.js";

const SHAPE = /^[A-Za-z0-9_][A-Za-z0-9._/+#@=-]{0,199}$/;
/** Names that git forbids, and names that could be mistaken for an option, a ref or a revision. */
const FAULTS: readonly [RegExp, string][] = [
  [/^(HEAD|FETCH_HEAD|ORIG_HEAD|MERGE_HEAD)$/, "git uses this name itself"],
  [/^refs\//, 'it starts with "refs/"'],
  [/\.\./, 'it contains ".."'],
  [/\/\//, 'it contains "//"'],
  [/@\{/, 'it contains "@{"'],
  [/[/.]$/, 'it ends with "/" or "."'],
  [/\/\./, 'a part of it starts with "."'],
  [/\.lock(\/|$)/, 'a part of it ends with ".lock"'],
];

/** Why a text is not a valid branch name; undefined if it is. Stricter than git itself. */
export function branchNameFault(name: string): string | undefined {
  if (!SHAPE.test(name)) return `it must match ${SHAPE.source}`;
  return FAULTS.find(([fault]) => fault.test(name))?.[1];
}

/** Whether a value is a valid branch name. */
export function isBranchName(branch: unknown): branch is string {
  return typeof branch === "string" && branchNameFault(branch) === undefined;
}

/** Throws `invalid_argument` unless the value is a valid branch name. */
export function assertBranchName(branch: unknown): asserts branch is string {
  const fault = typeof branch === "string" ? branchNameFault(branch) : "it is not a string";
  if (fault !== undefined)
    throw new SandboxError("invalid_argument", `Invalid branch ${JSON.stringify(branch)} — ${fault}`);
}

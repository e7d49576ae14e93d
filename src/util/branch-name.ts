import { SandboxError } from "../../contracts/errors.js";

const SHAPE = /^[A-Za-z0-9_][A-Za-z0-9._/+#@=-]{0,199}$/;
/** What git forbids, and what it allows but nobody should have to tell from an option, a ref or a revision. */
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

/** Tells why a text cannot be the name of a branch; undefined when it can. Stricter than git itself. */
export function branchNameFault(name: string): string | undefined {
  if (!SHAPE.test(name)) return `it must match ${SHAPE.source}`;
  return FAULTS.find(([fault]) => fault.test(name))?.[1];
}

/** Whether a value can be the name of a branch. */
export function isBranchName(branch: unknown): branch is string {
  return typeof branch === "string" && branchNameFault(branch) === undefined;
}

/** Refuses a name that cannot be a branch, or that could be taken for something else. */
export function assertBranchName(branch: unknown): asserts branch is string {
  const fault = typeof branch === "string" ? branchNameFault(branch) : "it is not a string";
  if (fault !== undefined)
    throw new SandboxError("invalid_argument", `Invalid branch ${JSON.stringify(branch)} — ${fault}`);
}

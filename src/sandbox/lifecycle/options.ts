import { SandboxError } from "../../../contracts/errors.js";
import { branchNameFault } from "../../util/branch-name.js";
import {
  arrayOf,
  type Check,
  checkBoolean,
  checkEnv,
  checkFunction,
  checkOptions,
  checkPath,
  checkSignal,
  checkText,
  checkTimeout,
  invalidArgument,
  oneOf,
  type Shape,
  whole,
} from "../../util/checks.js";
import { backendOptionNames } from "../backend-names.js";
import { parseAllow } from "../egress.js";
import { MAX_FILE_BYTES, type SandboxOptions } from "../types.js";

const ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
/** `ext::sh -c ...` and its like make git run a program of the caller's choosing. */
const TRANSPORT_HELPER = /^[A-Za-z0-9+.-]*::/;

const checkRepo: Check = (value, name) => {
  checkPath(value, name);
  if (value.startsWith("-")) throw invalidArgument(name, "a path or URL that does not start with a dash", value);
  if (TRANSPORT_HELPER.test(value)) throw invalidArgument(name, "a path or a plain URL", value);
};

const checkBranch: Check = (value, name) => {
  checkText(value, name);
  const fault = branchNameFault(value);
  if (fault !== undefined) throw invalidArgument(name, `a branch name (${fault})`, value);
};

const checkId: Check = (value, name) => {
  if (typeof value !== "string" || !ID.test(value)) throw invalidArgument(name, "the id of a sandbox", value);
};

const checkImage: Check = (value, name) => {
  checkText(value, name);
  if (value.startsWith("-") || /\s/.test(value)) throw invalidArgument(name, "the name of an image", value);
};

const checkToken: Check = (value, name) => {
  if (typeof value !== "string" || !/^[\x21-\x7e]+$/.test(value)) {
    throw new SandboxError("invalid_argument", `Invalid ${name}: expected printable characters without spaces`);
  }
};

const checkFilter: Check = (value, name) => {
  if (typeof value === "string" && /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(value)) return;
  throw invalidArgument(name, "the name of a filter", value);
};

const checkAllow: Check = (value, name) => {
  if (!Array.isArray(value)) throw invalidArgument(name, "an array", value);
  parseAllow(value as string[], name);
};

const networkShape: Shape = new Map([["allow", checkAllow]]);
const checkNetwork: Check = (value, name) => {
  if (value === "none" || value === "full") return;
  if (typeof value !== "object") throw invalidArgument(name, '"none", "full" or { allow: [...] }', value);
  checkOptions(value, networkShape, name);
  if ((value as { allow?: unknown }).allow === undefined) throw invalidArgument(name, "a list named allow", value);
};

const checkCpus: Check = (value, name) => {
  if (typeof value !== "number" || !Number.isFinite(value) || value <= 0) {
    throw invalidArgument(name, "a number of cores above zero", value);
  }
};
const positive = whole(1, Number.MAX_SAFE_INTEGER);
const limitsShape: Shape = new Map([
  ["memory", positive],
  ["cpus", checkCpus],
  ["pids", positive],
  ["disk", positive],
]);

const checkTarget: Check = (value, name) => {
  checkPath(value, name);
  if (!value.startsWith("/")) throw invalidArgument(name, "an absolute path", value);
};
const mountShape: Shape = new Map([
  ["source", checkPath as Check],
  ["target", checkTarget],
  ["writable", checkBoolean],
]);
const checkMount: Check = (value, name) => {
  checkOptions(value, mountShape, name);
  checkPath((value as { source?: unknown }).source, `${name}.source`);
};

const checkRecord: Check = (value, name) => {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw invalidArgument(name, "an object", Array.isArray(value) ? "an array" : value);
  }
};

const sandboxShape: Shape = new Map<string, Check>([
  ["repo", checkRepo],
  ["branch", checkBranch],
  ["baseDir", checkPath],
  ["workspace", oneOf("worktree", "overlay", "copy")],
  ["image", checkImage],
  ["id", checkId],
  ["keep", checkBoolean],
  ["operationTimeout", checkTimeout],
  ["runTimeout", checkTimeout],
  ["maxOutput", whole(0, MAX_FILE_BYTES)],
  ["env", checkEnv],
  ["allow", arrayOf(checkText)],
  ["network", checkNetwork],
  ["limits", (value, name) => checkOptions(value, limitsShape, name)],
  ["isolation", oneOf("required", "none")],
  ["mounts", arrayOf(checkMount)],
  ["signal", checkSignal],
  ["onEvent", checkFunction],
  ["githubToken", checkToken],
  ["gitFilters", arrayOf(checkFilter)],
  ["gitAlternates", arrayOf(checkPath)],
]);

const CREATING = ["repo", "branch", "baseDir", "workspace", "image", "gitFilters", "gitAlternates"] as const;
const OF_REPOSITORY = ["branch", "workspace", "gitFilters", "gitAlternates"] as const;

/** Refuses options that are wrong, unknown or do not go together, before anything is created. */
export function validateSandboxOptions(
  opts: unknown,
  backends: readonly string[] = [],
): asserts opts is SandboxOptions {
  const own = [...backendOptionNames(), ...backends].map((name): [string, Check] => [name, checkRecord]);
  checkOptions(opts, new Map([...sandboxShape, ...own]), "options");
  const given = opts as SandboxOptions;
  if (given.id !== undefined) {
    for (const name of CREATING) {
      if (given[name] !== undefined)
        throw excluded(name, String(given[name]), "id", "a reopened sandbox is already made");
    }
  }
  if (given.baseDir !== undefined && given.repo !== undefined) {
    throw excluded("baseDir", given.baseDir, "repo", "choose one of the two");
  }
  for (const name of OF_REPOSITORY) {
    if (given[name] !== undefined && given.repo === undefined) {
      throw new SandboxError("invalid_argument", `Option ${name} ("${given[name]}") needs the option repo`, {
        hint: `add repo, or leave ${name} out`,
      });
    }
  }
}

function excluded(name: string, value: string, other: string, hint: string): SandboxError {
  return new SandboxError("invalid_argument", `Option ${name} ("${value}") does not go together with ${other}`, {
    hint,
  });
}

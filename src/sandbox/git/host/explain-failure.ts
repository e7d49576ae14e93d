import { SandboxError, type SandboxErrorCode } from "../../../../contracts/errors.js";

interface Explanation {
  complaint: RegExp;
  code: SandboxErrorCode;
  hint: string;
}

/** What git says about a repository that can't be opened; the first match counts. English, because every git runs with LC_ALL=C. */
const EXPLANATIONS: readonly Explanation[] = [
  {
    complaint: /Expected git repo version|unknown repository extension|invalid value for 'extensions\./,
    code: "unsupported",
    hint: "This git does not know the format of the repository. Update git, or clone the repository again with this one",
  },
  {
    complaint: /bad config|bad (boolean|numeric) config|invalid value for '|could not expand include path/,
    code: "invalid_argument",
    hint: "The repository's .git/config is damaged. git config --list --show-origin names the line",
  },
  {
    complaint: /(smudge|clean|external) filter .*failed/,
    code: "missing_dependency",
    hint: "A filter that you named does not work here. For Git LFS: install git-lfs, and run git lfs fetch in the repository",
  },
  {
    complaint: /Input\/output error/,
    code: "unavailable",
    hint: "The disk reports errors. Look at dmesg, and copy the repository to another disk",
  },
  {
    complaint: /Too many open files|temporarily unavailable|[Cc]annot allocate memory|out of memory|ended by SIG/,
    code: "unavailable",
    hint: "The machine has too little memory, or this user too many processes or open files",
  },
  {
    // Git cuts off what it says about a path that is too long, with the quote and the reason.
    complaint: /File name too long|Not a directory|Is a directory|cannot create directory at '[^']*$/,
    code: "invalid_path",
    hint: "A file is in the place of a directory, or the commit has a name that this file system cannot hold",
  },
  {
    complaint: /invalid path '/,
    code: "invalid_argument",
    hint: "The commit has a path that git refuses to write. Start from another commit",
  },
  {
    complaint: /bad revision|unknown revision|Needed a single revision|couldn't find remote ref/,
    code: "not_found",
    hint: "git branch --all lists the branches there are",
  },
  {
    complaint:
      /corrupt|nonexistent object|(missing|bad|invalid|not a valid) object|unable to (read|unpack|parse|resolve reference)|failed to unpack tree|reference broken|unexpected line in|invalid gitfile|packfile|index file|inflate|could not parse/,
    code: "invalid_argument",
    hint: "The repository is damaged, or a partial clone: nothing is fetched while a sandbox opens. git fsck shows what is missing; a whole clone has it",
  },
];

/** Gives a failure of git on the source its code and a hint. Any other error is returned unchanged. */
export function explainGitFailure(error: unknown): unknown {
  if (!(error instanceof SandboxError) || error.code !== "internal") return error;
  const said = complaintOf(error);
  const found = said === undefined ? undefined : EXPLANATIONS.find(({ complaint }) => complaint.test(said));
  if (found === undefined) return error;
  const { backend, operation, cause, message } = error;
  return new SandboxError(found.code, message, { backend, operation, cause, hint: found.hint });
}

/** What git wrote to its standard error, if git's failure caused the error. */
function complaintOf(error: Error): string | undefined {
  for (let each: unknown = error; each instanceof Error; each = each.cause) {
    if (each.name === "GitFailure") return each.message;
  }
  return undefined;
}

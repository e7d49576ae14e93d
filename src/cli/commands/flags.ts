/** One flag of a verb. */
export interface Flag {
  readonly name: string;
  readonly short?: string;
  /** An older name, which still works. */
  readonly alias?: string;
  /** The value's name in the help; absent if the flag takes no value. */
  readonly value?: string;
  /** Whether the value may be omitted. `inline`: it is given only as `--flag=value`, so that the next word is never taken for it. */
  readonly isOptional?: boolean | "inline";
  readonly repeat?: boolean;
  readonly help: string;
  /** The shell's completions for the value. */
  readonly offers?:
    | readonly string[]
    | ("backends" | "sandboxes" | "snapshots" | "runs" | "sandboxes and runs" | "files" | "directories");
}

export const JSON_FLAG: Flag = { name: "json", help: "print one JSON document on stdout" };
export const HELP_FLAG: Flag = { name: "help", short: "h", help: "show this help" };
export const PR_WITH_FLAG: Flag = {
  name: "pr-with",
  value: "what",
  offers: ["rest", "gh"],
  help: "open the pull request with GitHub's REST API (rest, the default) or its program (gh)",
};
export const BACKEND_FLAG: Flag = {
  name: "backend",
  short: "b",
  value: "name",
  offers: "backends",
  help: "a backend, or the module of your own (default: GLOVEBOX_BACKEND, your configuration file, else local)",
};

export const NAME_FLAG: Flag = { name: "name", value: "name", help: "name of the new sandbox; no two have the same" };
export const WORK_DIR_FLAG: Flag = {
  name: "work-dir",
  value: "path",
  help: "path of its files inside (default: /workspace where the backend can)",
};
export const LABEL_FLAG: Flag = {
  name: "label",
  value: "k=v",
  repeat: true,
  help: "label of the new sandbox, to find it by; never a secret; repeatable",
};

export const NETWORK_FLAG: Flag = {
  name: "network",
  value: "rule",
  offers: ["none", "full", "allow="],
  help: "none (default), full, allow=a,b,deny=c or @rules.yaml",
};

export const SECRET_FLAG: Flag = {
  name: "secret",
  value: "NAME[=hosts]",
  repeat: true,
  help: "give commands a placeholder for your variable; only its hosts get the value; may end in ,header= ,in= ,sign=aws ,git= or ,login=; repeatable",
};

/** The flags that `exec` and `shell` share: how to open the sandbox. */
export const SANDBOX_FLAGS: readonly Flag[] = [
  BACKEND_FLAG,
  { name: "repo", value: "path|url", offers: "directories", help: "work on a worktree of this git repository" },
  { name: "branch", value: "name", help: "branch of that worktree; a new one starts at HEAD" },
  {
    name: "workspace",
    value: "kind",
    offers: ["worktree", "overlay", "copy"],
    help: "how the sandbox gets its files: worktree (default), overlay or copy",
  },
  {
    name: "include-dirty",
    help: "with --repo: also copy your uncommitted edits in, and new files that are not ignored; never .env*",
  },
  {
    name: "here",
    value: "copy",
    isOptional: "inline",
    offers: ["copy"],
    help: "let the command see the current directory, read-only; --here=copy gives it a copy to write to",
  },
  {
    name: "git-filter",
    value: "name",
    repeat: true,
    help: "allow a git filter of yours to run on checkout, for example lfs; repeatable",
  },
  {
    name: "git-alternate",
    value: "path",
    repeat: true,
    offers: "directories",
    help: "let the repository borrow objects from this store, mounted in the sandbox; repeatable",
  },
  { name: "base-dir", value: "path", offers: "directories", help: "work in this directory itself; never removed" },
  WORK_DIR_FLAG,
  {
    name: "paths",
    value: "reach",
    offers: ["workdir", "sandbox"],
    help: "paths that file calls and work directories may use: workdir (default), or sandbox: all that commands can",
  },
  { name: "image", value: "name", help: "image of the container or machine, if the backend uses one" },
  NETWORK_FLAG,
  {
    name: "audit",
    value: "file",
    offers: "files",
    help: "add a line of JSON to this file for each connection and refusal",
  },
  { name: "memory", value: "size", help: "memory limit, for example 512m" },
  { name: "pids", value: "count", help: "limit on processes and threads, 4096 unless set" },
  { name: "cpus", value: "cores", help: "limit on CPU cores, for example 1.5" },
  { name: "disk", value: "size", help: "limit on the bytes of its files, for example 2g" },
  { name: "env", short: "e", value: "K=V", repeat: true, help: "set a variable; K alone passes yours; repeatable" },
  SECRET_FLAG,
  {
    name: "mount",
    value: "src[:target][:rw]",
    repeat: true,
    offers: "files",
    help: "mount a host path, read-only unless :rw; repeatable",
  },
  {
    name: "snapshot",
    value: "id|name",
    offers: "snapshots",
    help: "start with the files of this snapshot, on its repository",
  },
  {
    name: "publish",
    value: "port",
    repeat: true,
    help: "reach this port of the sandbox from your machine; prints the address; repeatable",
  },
  { name: "ttl", value: "time", help: "remove the sandbox after this time, even if it is kept, for example 2h" },
  { name: "idle", value: "time", help: "close the sandbox when it was not used for this time, for example 10m" },
  {
    name: "keep",
    value: "all",
    isOptional: "inline",
    offers: ["all"],
    help: "keep the files and print the sandbox's id; --id opens it again; --keep=all keeps $HOME and /tmp, too",
  },
  { name: "id", value: "id", offers: "sandboxes", help: "open a kept sandbox again, by its id or name" },
  NAME_FLAG,
  { name: "reopen", help: "with --name: open the sandbox of this name if there is one, else make it" },
  LABEL_FLAG,
  { name: "cwd", value: "path", help: "directory of the command, relative to the work directory (default: that one)" },
  { name: "user", value: "name", help: "user that runs the command, if the backend lets you choose" },
  { name: "timeout", value: "time", help: "end the command after this time, for example 30s (default: never)" },
  { name: "isolation", value: "kind", offers: ["required", "none"], help: "required (default), or none: not confined" },
];

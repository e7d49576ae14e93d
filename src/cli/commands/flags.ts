/** One flag of a verb. */
export interface Flag {
  readonly name: string;
  readonly short?: string;
  /** What the value is called in the help; absent: the flag takes none. */
  readonly value?: string;
  /** Whether the value may be left out. */
  readonly isOptional?: boolean;
  readonly repeat?: boolean;
  readonly help: string;
  /** What the shell offers as a value. */
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
  help: "open the pull request by GitHub's REST interface (default: rest) or its program gh",
};
export const BACKEND_FLAG: Flag = {
  name: "backend",
  short: "b",
  value: "name",
  offers: "backends",
  help: "backend, path of a module, or package beside Glovebox (default: GLOVEBOX_BACKEND, else local)",
};

/** How a sandbox is made; the flags that `exec` and `shell` share. */
export const SANDBOX_FLAGS: readonly Flag[] = [
  BACKEND_FLAG,
  { name: "repo", value: "path|url", offers: "directories", help: "work on a worktree of this git repository" },
  { name: "branch", value: "name", help: "branch of that worktree; made from HEAD when it is new" },
  {
    name: "workspace",
    value: "kind",
    offers: ["worktree", "overlay", "copy"],
    help: "how its files get in: worktree (default), overlay or copy",
  },
  {
    name: "git-filter",
    value: "name",
    repeat: true,
    help: "let a git filter of your own run on checkout, for example lfs; repeatable",
  },
  {
    name: "git-alternate",
    value: "path",
    repeat: true,
    offers: "directories",
    help: "let the repository borrow objects from this store, and show it inside; repeatable",
  },
  { name: "base-dir", value: "path", offers: "directories", help: "work in this directory itself; it is not removed" },
  { name: "image", value: "name", help: "image of the container or machine, where the backend has one" },
  { name: "network", value: "rule", offers: ["none", "full", "allow="], help: "none (default), full or allow=a,b" },
  { name: "memory", value: "size", help: "limit of memory, for example 512m" },
  { name: "pids", value: "count", help: "limit of processes and threads" },
  { name: "cpus", value: "cores", help: "limit of cores, for example 1.5" },
  { name: "env", short: "e", value: "K=V", repeat: true, help: "set a variable; K alone passes on yours; repeatable" },
  {
    name: "mount",
    value: "src[:target][:rw]",
    repeat: true,
    offers: "files",
    help: "show a host path inside, read-only unless :rw; repeatable",
  },
  { name: "keep", help: "leave the files; the id is printed, and --id opens it again" },
  { name: "id", value: "id", offers: "sandboxes", help: "open a kept sandbox again" },
  { name: "timeout", value: "time", help: "deadline of the command, for example 30s (default: none)" },
  { name: "isolation", value: "kind", offers: ["required", "none"], help: "required (default), or none: not confined" },
];

/** One thing that a backend's probe checked. */
export interface Finding {
  /** What was checked, in a word or two. */
  readonly name: string;
  /** `ok`: works. `limited`: works, but enforces less. `missing`: the backend can't work. `unused`: not needed here. */
  readonly status: "ok" | "limited" | "missing" | "unused";
  /** What was found. Never a secret. */
  readonly detail: string;
  /** The command or setting that fixes it. */
  readonly fix?: string;
  /** A file that `fix` names, such as one for an administrator to apply. It has several lines. */
  readonly manifest?: string;
}

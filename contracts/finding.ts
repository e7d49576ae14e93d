/** One thing that a backend was looked at for. */
export interface Finding {
  /** What was looked at, in a word or two. */
  readonly name: string;
  /** `ok`: holds. `limited`: works, but less is kept. `missing`: the backend cannot work. `unused`: not needed here. */
  readonly status: "ok" | "limited" | "missing" | "unused";
  /** What was found. Never a secret. */
  readonly detail: string;
  /** The line that mends it. */
  readonly fix?: string;
}

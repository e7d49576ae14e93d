import type { Flag } from "../../commands.js";

const LISTERS = {
  sandboxes: ["ls --quiet --names"],
  snapshots: ["snapshots --quiet"],
  runs: ["runs --quiet"],
  "sandboxes and runs": ["ls --quiet --names", "runs --quiet"],
} as const;

/** The kinds of names that the script looks up when you press Tab. */
export const LISTED: readonly (keyof typeof LISTERS)[] = Object.keys(LISTERS) as (keyof typeof LISTERS)[];

/** The command that lists the names, one a line; undefined if they are fixed. */
export function listerOf(offers: Flag["offers"]): string | undefined {
  const kind = LISTED.find((each) => each === offers);
  return kind && LISTERS[kind].map((verb) => `glovebox ${verb} 2>/dev/null`).join("; ");
}

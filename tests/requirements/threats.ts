import type { Requirement } from "./requirement.js";

const GIT: Readonly<Record<string, string>> = {
  "01": "Hooks, wherever they are planted, do not run on the host",
  "02": "Settings that name programs, hosts or proxies do not count, also by include and config.worktree",
  "11": "Filters, textconv, diff and merge drivers and archivers do not run; a diff shows the raw content",
  "12": "A .git that is swapped, moved, deleted or rewritten leads nobody elsewhere",
  "13": "A HEAD or a branch that stands for another moves no ref of the user's",
  "14": "core.worktree, core.bare and a sparse checkout let nothing be written elsewhere",
  "16": "What is shown is what is pushed, whatever replaces objects",
  "17": "Nothing but ignored files is hidden from changes, snapshot and push",
  "18": "Missing, borrowed, damaged and absurd objects run nothing, bring nothing in and take no end of time",
  "20": "An embedded bare repository is a directory like any other",
  "21": ".gitmodules is never followed; a dangerous one is refused",
  "22": "Nested repositories run nothing, and are saved or named",
  "23": "Crafted objects do not come in",
  "24": "Names that look like options are names",
  "25": "A remote that is a program, a file, an option or a foreign scheme is refused",
  "26": "No setting leads the token elsewhere",
  "27": "No redirect, realm or word of a remote gets the token or the terminal",
  "28": "The token is nowhere but in the channel that git asks",
  "29": "A repository of somebody else's is refused, and no setting is changed for it",
  "30": "No git works on in the background",
};

const NETWORK: Readonly<Record<string, string>> = {
  "01": "Without a network no kind of socket gets out",
  "02": "Metadata, private and loopback addresses are never reached, in no spelling",
  "03": "No resolver is reached",
  "04": "Names are matched by label; no spelling, redirect, TLS name or second answer gets around it",
  "06": "What uses no proxy has no network",
  "08": "A server inside is not reached from outside",
  "09": "A list of names that cannot be kept is refused",
};

const FAULTS: Readonly<Record<string, string>> = {
  "01": "A process killed while it opens a sandbox leaves nothing that reap does not take away",
  "02": "A process killed during a command takes the command along",
  "03": "A sandbox whose own process is killed is lost with a typed error, and nothing of it survives",
  "04": "A process killed during a snapshot leaves it whole or absent, and all earlier ones",
  "06": "A push of which nobody learned that it had succeeded is found by the next one",
  "07": "A reap that is killed is finished by the next one",
  "09": "A full disk is a typed error that leaves whole records",
  "10": "Once there is room the same call succeeds",
  "11": "What is read-only or gone is a typed error",
  "19": "A clock that jumps ends nothing early and keeps nothing alive",
  "20": "A signal ends the command line with all it started",
  "22": "Without free descriptors there are typed errors, and no leak",
  "23": "Without free processes there are typed errors, and no leak",
  "25": "Many sandboxes at once do not meet, and leave nothing",
  "26": "Any change of a file may fail, once or for good: records stay whole",
  "28": "A thread that ends and an event loop that stands still are no excuse",
  "30": "An acknowledged snapshot outlives a power loss",
  "32": "Random work and harm for a long time let nothing grow",
};

/** What somebody inside may try, and what may go wrong: each is a test. */
export const THREATS: readonly Requirement[] = [
  ...listed("N-GIT", GIT),
  ...listed("N-NET", NETWORK),
  ...listed("F", FAULTS),
];

function listed(prefix: string, sentences: Readonly<Record<string, string>>): Requirement[] {
  return Object.entries(sentences).map(([name, sentence]) => ({
    id: `${prefix}-${name}`,
    sentence,
    source: "threats",
  }));
}

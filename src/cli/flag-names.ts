import type { Flag } from "./commands.js";

/** Options of the library whose flags have another name. */
const FLAG_OF: Readonly<Record<string, string>> = {
  baseDir: "base-dir",
  workDir: "work-dir",
  gitFilters: "git-filter",
  gitAlternates: "git-alternate",
  idleTimeout: "idle",
  ifExists: "reopen",
  labels: "label",
  mounts: "mount",
  sandboxType: "backend",
  expected: "expect",
  "limits.memory": "memory",
  "limits.pids": "pids",
  "limits.cpus": "cpus",
  "limits.disk": "disk",
  "network.allow": "network",
};

/** The parts of a network rule, for messages. */
const PARTS: Readonly<Record<string, string>> = { host: "name", paths: "path", methods: "method" };

/** Words before the name of an option, in messages and hints. */
const BEFORE =
  "^Option|^Invalid|the option|together with|combined with|instead of|made with another|made with other|omit|leave|leave out|add|give|as";

/** Replaces the options of the library in an error's text by the flags of the verb that the user typed. */
export function nameFlags(text: string, flags: readonly Flag[]): string {
  const flagOf = (option: string): string | undefined => {
    const name = FLAG_OF[option] ?? option;
    return flags.some((flag) => flag.name === name) ? `--${name}` : undefined;
  };
  return text
    .replace(/^Invalid mounts\[\d+\]\.(source|target)\b/, (all, part: string) =>
      flagOf("mounts") === undefined ? all : `Invalid ${part} of --mount`,
    )
    .replace(/^Invalid network\.(?:allow|deny)\[\d+\](?:\.(\w+)(?:\[\d+\])?)?(?=[ :])/, (all, field?: string) =>
      flagOf("network") === undefined ? all : `Invalid ${PARTS[field ?? "host"] ?? field} of --network`,
    )
    .replace(/^Invalid labels\.("[^"]*"|[\w./-]+)/, (all, key: string) =>
      flagOf("labels") === undefined ? all : `Invalid --label ${key}`,
    )
    .replace(/\b(?:set )?(\w+): (?:"([\w.:/-]+)"|true)/g, (all, option: string, value?: string) =>
      option in FLAG_OF || IN_CONTEXT.has(option) ? (givenFlag(flags, flagOf(option), value) ?? all) : all,
    )
    .replace(/(?<=directory with )out\b/, (option) => flagOf(option) ?? option)
    .split(/("[^"]*")/)
    .map((part, at) => (at % 2 === 1 ? part : inWords(part, flagOf)))
    .join("")
    .replace(/^Option (--)/, "$1")
    .replace(/^(--reopen) \("reopen"\)/, "$1")
    .replace(/^(--[\w-]+) \("([\w@%+=:,./-]*)"\)/, "$1 $2");
}

/** Options whose names are words: they are meant only after certain words. */
const IN_CONTEXT: ReadonlySet<string> = new Set([
  ...["backend", "repo", "branch", "workspace", "image", "snapshot", "id", "name", "keep", "ttl", "network"],
  ...["isolation", "env", "publish", "ref", "paths"],
]);

function inWords(text: string, flagOf: (option: string) => string | undefined): string {
  const names = [...IN_CONTEXT, ...Object.keys(FLAG_OF)].map((name) => name.replace(".", "\\.")).join("|");
  const afterWord = new RegExp(`(?<=(?:${BEFORE}) )(${names})(?![\\w.[-]| of )`, "g");
  const distinct = Object.keys(FLAG_OF).filter((name) => /[A-Z.]/.test(name));
  const anywhere = new RegExp(
    `(?<![\\w.-])(${distinct.map((name) => name.replace(".", "\\.")).join("|")})(?![\\w.[])`,
    "g",
  );
  const toFlag = (name: string): string => flagOf(name) ?? name;
  return text
    .replace(afterWord, toFlag)
    .replace(anywhere, toFlag)
    .replace(/the option (--)/g, "$1");
}

function givenFlag(flags: readonly Flag[], flag: string | undefined, value: string | undefined): string | undefined {
  if (flag === undefined) return undefined;
  const takesValue = flags.some((each) => `--${each.name}` === flag && each.value !== undefined);
  return value === undefined || !takesValue ? flag : `${flag} ${value}`;
}

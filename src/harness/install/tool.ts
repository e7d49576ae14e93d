/** What a tool is asked to find out where it gets packages from. */
export interface Question {
  readonly program: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Whether the user's own settings are kept from it. */
  readonly isUnconfigured?: boolean;
}

/** The lines that a tool prints, of which the first starts with an address; otherwise why there are none. */
export type Answer =
  | { readonly lines: readonly string[]; readonly reason?: undefined }
  | { readonly lines?: undefined; readonly reason: string };

/** The user's own configuration: variables, and files outside the repository. */
export interface ToolSettings {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  /** The text of a file; undefined if it is absent, unreadable, or in the repository. */
  read(path: string): string | undefined;
  /** Asks a tool of the user, outside the repository. */
  ask(question: Question): Promise<Answer>;
}

/** The lines of a tool's answer; none if it has none. */
export type AskDefault = () => Promise<readonly string[]>;

/** How a tool is set up by its user. */
export interface ToolSetup {
  /** The registries that it may reach. */
  readonly registries: readonly string[];
  /** Whether it would use another one, too, of which nobody has said where it is. */
  readonly isIncomplete: boolean;
  /** Variables that make it use them in a sandbox, which has none of the user's files. No secrets. */
  readonly env: Readonly<Record<string, string>>;
  /** Arguments for what no variable can say. */
  readonly args: readonly string[];
  /** Whether the user has a token or a password for one of them. It stays outside. */
  readonly hasSecret: boolean;
}

/** The files of the repository that a tool looks at, by name. */
export type ProjectFiles = Readonly<Record<string, string>>;

/** A tool that installs what a lockfile names. */
export interface InstallTool {
  readonly name: string;
  /** The program that it is, when a blueprint names its own command. */
  readonly programs: readonly string[];
  /** Tools of one ecosystem exclude each other; the first in the table whose lockfile is there is taken. */
  readonly ecosystem: "node" | "python" | "cargo" | "go";
  /** In the order in which the tool itself prefers them. */
  readonly lockfiles: readonly string[];
  /** Files of the repository that may name registries, too. */
  readonly projectFiles: readonly string[];
  /** The directory that it fills, if that is in the repository. */
  readonly fills?: string;
  /** Whether a lockfile is of this tool, and names something to install. */
  accepts(lock: string): boolean;
  /** The command that installs exactly what the lockfile says. */
  run(lockfile: string, lock: string): readonly string[];
  /** Variables of every installation. */
  readonly env?: Readonly<Record<string, string>>;
  /** Questions about where it gets packages from unless configured; the first answer counts. Absent: the tool can't say it. */
  readonly asks?: readonly Question[];
  /** The user's own setup. `project`: what the repository sets itself is not overridden. `ask`: for what the user has not configured. */
  setup(config: ToolSettings, project: ProjectFiles, ask: AskDefault): Promise<ToolSetup>;
  /** Every address that the lockfile or a project file names. They come from a stranger. */
  named(lock: string, project: ProjectFiles): readonly string[];
  /** Asks for the registry that the tool replaces by the configured one wherever a lockfile names it. */
  readonly replaces?: Question;
}

/** An address without user, password, query and fragment; undefined for what is no address of the web. */
export function plainAddress(text: string): { url: string; hasSecret: boolean } | undefined {
  if (!/^https?:\/\//i.test(text) || !URL.canParse(text)) return undefined;
  const url = new URL(text);
  const hasSecret = url.username !== "" || url.password !== "";
  url.username = "";
  url.password = "";
  url.search = "";
  url.hash = "";
  return { url: url.href, hasSecret };
}

/** The start of an address in the text of a stranger. Bounded, so that no text makes the search slow. */
export const SCHEME = "(?:[a-z]{1,10}\\+)?[a-z]{2,10}:\\/\\/";

/** Every match of the first group of a pattern. */
export function matchesOf(text: string, pattern: RegExp): string[] {
  return [...text.matchAll(pattern)].map((match) => match[1] ?? "");
}

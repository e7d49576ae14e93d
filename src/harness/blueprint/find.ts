import { lstatSync, readdirSync, statSync } from "node:fs";
import { basename, dirname, extname, join, resolve } from "node:path";
import { SandboxError } from "../../../contracts/errors.js";
import { userHome } from "../../machine/user-home.js";
import { openBeneath } from "../../util/beneath.js";
import { nearestName } from "../../util/nearest.js";
import { packageRoot } from "../../util/own-version.js";

/** Where a blueprint was found. */
export type BlueprintOrigin = "path" | "repository" | "user" | "built-in";

/** A blueprint that was found and not yet read. */
export interface FoundBlueprint {
  readonly name: string;
  readonly path: string;
  readonly origin: BlueprintOrigin;
}

/** Where to look. */
export interface FindOptions {
  /** The repository that is worked on, when it is a directory here. */
  readonly repoDir?: string | undefined;
  /** Directory that relative paths start from. Default: the process's. */
  readonly cwd?: string | undefined;
  readonly env?: Readonly<Record<string, string | undefined>>;
}

/** What a blueprint can be written in; the first wins where one name has several files. */
export const EXTENSIONS: readonly string[] = [".yaml", ".yml", ".json", ".ts", ".mts", ".js", ".mjs"];
/** Where a repository has its blueprints, from its top. */
export const REPOSITORY_FOLDER: readonly string[] = [".glovebox", "blueprints"];

/** Finds a blueprint: a path, else a name in the repository, in the user's folder, among the built-in ones. */
export function findBlueprint(name: string, options: FindOptions = {}): FoundBlueprint {
  const isPath = /[/\\]/.test(name) || EXTENSIONS.includes(extname(name));
  if (isPath) {
    const path = resolve(options.cwd ?? process.cwd(), name);
    if (isFile(path)) return { name: basename(path, extname(path)), path, origin: "path" };
    throw new SandboxError("not_found", `There is no blueprint file ${name}`, {
      hint: "glovebox blueprints lists what there is",
    });
  }
  const known = listBlueprints(options);
  const found = known.find((blueprint) => blueprint.name === name);
  if (found !== undefined) return found;
  const names = [...new Set(known.map((blueprint) => blueprint.name))];
  const close = nearestName(name, names);
  throw new SandboxError("not_found", `There is no blueprint ${JSON.stringify(name)}`, {
    hint: close === undefined ? `there are ${names.join(", ")}; or give a path` : `did you mean ${close}?`,
  });
}

/**
 * Every blueprint that has a name, in the order of the look-up: an earlier one hides a later one of its name. What comes
 * from the repository never hides what is built in.
 */
export function listBlueprints({
  repoDir,
  cwd = process.cwd(),
  env = process.env,
}: FindOptions = {}): FoundBlueprint[] {
  const config = env["XDG_CONFIG_HOME"] || join(env["HOME"] || userHome(), ".config");
  const builtIn = filesIn(join(packageRoot(), "blueprints"), "built-in");
  const known = new Set(builtIn.map(({ name }) => name));
  const own = filesInRepository(repoDir ?? cwd);
  return [
    ...own.filter(({ name }) => !known.has(name)),
    ...filesIn(join(config, "glovebox", "blueprints"), "user"),
    ...builtIn,
    ...own.filter(({ name }) => known.has(name)),
  ];
}

/** Links are listed and not followed: reading one is an error. */
function filesInRepository(top: string): FoundBlueprint[] {
  try {
    using folder = openBeneath(resolve(top), REPOSITORY_FOLDER);
    return filesIn(dirname(folder.at("x")), "repository", folder.path);
  } catch (error) {
    const { code } = error as SandboxError;
    if (code === "not_found" || code === "invalid_path" || (code as string) === "ENOENT") return [];
    throw error;
  }
}

function filesIn(directory: string, origin: BlueprintOrigin, shown: string = directory): FoundBlueprint[] {
  if (statSync(directory, { throwIfNoEntry: false })?.isDirectory() !== true) return [];
  const isThere = (path: string): boolean => (origin === "repository" ? isFileOrLink(path) : isFile(path));
  const names = new Map<string, string>();
  for (const extension of EXTENSIONS) {
    for (const file of readdirSync(directory).sort()) {
      const name = basename(file, extension);
      if (extname(file) === extension && !names.has(name) && isThere(join(directory, file))) names.set(name, file);
    }
  }
  return [...names].sort().map(([name, file]) => ({ name, path: join(shown, file), origin }));
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
}

function isFileOrLink(path: string): boolean {
  const found = lstatSync(path, { throwIfNoEntry: false });
  return found?.isFile() === true || found?.isSymbolicLink() === true;
}

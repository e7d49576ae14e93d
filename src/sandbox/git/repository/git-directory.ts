import { copyFile, mkdir, stat, utimes, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { SandboxError } from "../../../../contracts/errors.js";
import { readUntrustedFile } from "./untrusted-file.js";

/** The hash that names objects. */
type ObjectFormat = "sha1" | "sha256";

/** Settings of a git directory, by section. */
export type GitConfig = Readonly<Record<string, Readonly<Record<string, string>>>>;

/** Makes a directory for one use. Its parent must exist: the directory of a removed sandbox must not come back. */
export async function makeScratchDirectory(path: string): Promise<void> {
  await mkdir(path, { mode: 0o700 });
}

/** Writes the few files of a git directory. Faster than `git init`, and without templates. */
export async function writeGitDirectory(
  path: string,
  opts: {
    head: string;
    config: GitConfig;
    /** The repository whose objects it will read. */
    repository?: { readonly gitDir: string; readonly objectFormat: ObjectFormat } | undefined;
    objectFormat?: ObjectFormat;
  },
): Promise<void> {
  const { head, config, repository } = opts;
  for (const name of ["objects/info", "objects/pack", "refs/heads", "refs/tags", "info"]) {
    await mkdir(join(path, name), { recursive: true, mode: 0o700 });
  }
  const format = opts.objectFormat ?? repository?.objectFormat ?? "sha1";
  const core = { repositoryformatversion: format === "sha1" ? "0" : "1", ...config["core"] };
  const extensions = format === "sha1" ? {} : { extensions: { objectformat: format } };
  await writeFile(join(path, "config"), formatConfig({ ...config, core, ...extensions }), { mode: 0o600 });
  await writeFile(join(path, "HEAD"), `ref: ${head}\n`, { mode: 0o600 });
  if (repository === undefined) return;
  // The file `shallow` says where the history ends; without it git takes the missing parents for damage.
  for (const name of ["shallow", "info/exclude", "info/attributes"]) {
    const content = readUntrustedFile(join(repository.gitDir, name));
    if (content !== undefined) await writeFile(join(path, name), content, { mode: 0o600 });
  }
}

/** Copies a file; false when it doesn't exist. With its time: git would miss changes if an index seemed younger than it is. */
export async function copyIfThere(from: string, to: string): Promise<boolean> {
  await mkdir(dirname(to), { recursive: true, mode: 0o700 });
  try {
    await copyFile(from, to);
    const seconds = Math.floor((await stat(from)).mtimeMs / 1000);
    await utimes(to, seconds, seconds);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return false;
    throw error;
  }
}

/** The text of a configuration file. */
export function formatConfig(config: GitConfig): string {
  const sections = Object.entries(config).map(([section, values]) => {
    const lines = Object.entries(values).map(([key, value]) => `\t${key} = ${quote(value)}\n`);
    return `[${section}]\n${lines.join("")}`;
  });
  return sections.join("");
}

function quote(value: string): string {
  if (/[\n\r\0]/.test(value)) {
    throw new SandboxError("invalid_path", `${JSON.stringify(value)} cannot be written into a git configuration`);
  }
  return `"${value.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
}

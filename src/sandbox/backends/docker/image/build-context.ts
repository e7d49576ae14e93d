import { createHash } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import { join, posix, resolve } from "node:path";
import type { BuildStage } from "../../../../../contracts/container-engine.js";
import { SandboxError } from "../../../../../contracts/errors.js";
import { packDirectory } from "../../../../util/tar/tar-pack.js";
import { parseDockerIgnore, type Selection } from "./docker-ignore.js";

const MAX_DOCKERFILE = 1 << 20;
/** The settings of a git directory may have a token in them, as those of a clone from `https://<token>@<host>` do. They are never sent. */
const GIT_SETTINGS = /(^|\/)\.git\/(modules\/.+\/)?config(\.worktree)?$/;

/** The directory that a build may read from, and its Dockerfile. */
export interface BuildContext {
  /** Relative, normalised. */
  readonly dockerfile: string;
  /** The base images in the Dockerfile's FROM lines, except those named by arguments. */
  readonly bases: readonly string[];
  /** A digest of the files with their names and modes, but not their times. */
  digest(): Promise<string>;
  /** The files as a tar archive. */
  pack(): AsyncIterable<Uint8Array>;
}

/** Opens the context of a build: `not_found` when the directory or its Dockerfile doesn't exist. */
export async function openContext({
  tag,
  contextPath,
  dockerfilePath = "Dockerfile",
}: BuildStage): Promise<BuildContext> {
  const directory = resolve(contextPath);
  const found = await stat(directory).catch(() => undefined);
  if (!found?.isDirectory()) {
    throw new SandboxError("not_found", `The context of the image "${tag}" is not a directory: ${contextPath}`, {
      backend: "docker",
    });
  }
  const dockerfile = posix.normalize(dockerfilePath);
  const text = await readText(join(directory, dockerfile));
  if (text === undefined) {
    throw new SandboxError("not_found", `The context of the image "${tag}" has no ${dockerfile}: ${contextPath}`, {
      backend: "docker",
    });
  }
  const select = await selection(directory, dockerfile);
  return {
    dockerfile,
    bases: [...text.matchAll(/^\s*FROM\s+(?:--\S+\s+)*([^\s$]+)(?=\s|$)/gim)].map(([, base = ""]) => base),
    async digest() {
      const hash = createHash("sha256");
      for await (const chunk of packDirectory(directory, { select, isTimeless: true })) hash.update(chunk);
      return hash.digest("hex");
    },
    pack: () => packDirectory(directory, { select }),
  };
}

/** Like the docker command, prefers `<Dockerfile>.dockerignore` to `.dockerignore`. */
async function selection(
  directory: string,
  dockerfile: string,
): Promise<(path: string, isDirectory: boolean) => Selection> {
  const own = await readText(join(directory, `${dockerfile}.dockerignore`));
  const common = own ?? (await readText(join(directory, ".dockerignore")));
  const select =
    common === undefined ? () => "take" as const : parseDockerIgnore(common, [dockerfile, ".dockerignore"]);
  return (path, isDirectory) => (GIT_SETTINGS.test(path) && !isDirectory ? "skip" : select(path, isDirectory));
}

async function readText(path: string): Promise<string | undefined> {
  const found = await stat(path).catch(() => undefined);
  if (!found?.isFile()) return undefined;
  if (found.size > MAX_DOCKERFILE)
    throw new SandboxError("limit_exceeded", `${path} is larger than ${MAX_DOCKERFILE} bytes`);
  return await readFile(path, "utf8");
}

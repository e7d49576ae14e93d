import { constants } from "node:fs";
import { type FileHandle, mkdir, open, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { removeOwnTree } from "../../../machine/remove-tree.js";
import type { HostGitOptions } from "../host.js";
import type { RemoteTarget } from "./remote-url.js";

/** The user name that GitHub wants with a token; other hosts accept any. */
const USER = "x-access-token";

/**
 * Answers git's question for a token while something runs.
 *
 * The program that answers knows one origin and fails for any other. The token is in a file without a name, open as descriptor 3: it is in
 * no argument, variable or setting, and nothing is left of it if this process is killed.
 */
export async function withAskpass<T>(
  dir: string,
  { origin, protocol }: RemoteTarget,
  token: string,
  use: (opts: Pick<HostGitOptions, "extraFile"> & { env: Readonly<Record<string, string>> }) => Promise<T>,
): Promise<T> {
  let secret: FileHandle | undefined;
  try {
    await mkdir(dir, { mode: 0o700 });
    const program = join(dir, "askpass");
    await writeFile(program, script(origin, protocol), { mode: 0o700 });
    secret = await namelessFile(join(dir, "token"), token);
    return await use({ extraFile: secret.fd, env: { GIT_ASKPASS: program } });
  } finally {
    await secret?.close();
    await removeOwnTree(dir);
  }
}

async function namelessFile(path: string, content: string): Promise<FileHandle> {
  const { O_RDWR, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
  const file = await open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
  try {
    await unlink(path);
    await file.writeFile(content);
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** The origin has been checked for characters with a meaning to a shell. */
function script(origin: string, protocol: string): string {
  const withUser = origin.replace(`${protocol}://`, `${protocol}://${USER}@`);
  return `#!/bin/sh
case "$1" in
  "Username for '${origin}': ") echo ${USER} ;;
  "Password for '${withUser}': ") exec cat /proc/self/fd/3 ;;
  *) exit 1 ;;
esac
`;
}

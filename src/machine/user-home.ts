import { homedir, userInfo } from "node:os";

/** The user's home directory. A user that the system doesn't know, as in a container with `--user 1234`, may have none: a path where nothing is. */
export function userHome(): string {
  try {
    // An empty HOME names no directory.
    return homedir() || userInfo().homedir;
  } catch {
    return "/nonexistent";
  }
}

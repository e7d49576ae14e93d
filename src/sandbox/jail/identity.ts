import { randomInt } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { SandboxError } from "../../../contracts/errors.js";
import { findContainer } from "../../machine/container.js";
import { standing } from "../../machine/standing.js";
import type { JailUser } from "./jail.js";

/** User ids that no distribution assigns; so many that two sandboxes never get the same. */
const FIRST_UID = 0x7000_0000;
const UID_COUNT = 1 << 24;

/**
 * The user for a new sandbox: an unused id if we are root. Otherwise undefined, and our own user is mapped. Root who may not mount can't give files to
 * another user, so it is mapped too, but only in a container, where it is the container's root.
 */
export function chooseUser(): JailUser | undefined {
  if (standing() === "user") return undefined;
  if (standing() === "bare-root") {
    if (findContainer() !== undefined) return undefined;
    throw new SandboxError(
      "no_isolation",
      "Glovebox runs as root without CAP_SYS_ADMIN, so commands would be root, too",
      {
        hint: "run it as an ordinary user, or let root keep CAP_SYS_ADMIN",
      },
    );
  }
  const ranges = readFileSync("/proc/self/uid_map", "utf8")
    .trim()
    .split("\n")
    .map((line) => line.trim().split(/\s+/).map(Number));
  const range = ranges.find(([first = 0, , count = 0]) => first <= FIRST_UID && first + count >= FIRST_UID + UID_COUNT);
  if (range) return userAt(FIRST_UID + randomInt(UID_COUNT));
  // A container with its own user namespace has fewer ids; nobody assigns the upper half of its largest range.
  const [first = 0, outside = 0, count = 0] = ranges.sort((a, b) => (b[2] ?? 0) - (a[2] ?? 0))[0] ?? [];
  if (count >= 4096) return userAt(first + randomInt(count >> 1, count));
  if (outside !== 0) return undefined; // our root is an ordinary user of the host already
  throw new SandboxError("no_isolation", "Glovebox runs as root, and there is no other user id for the sandbox");
}

function userAt(id: number): JailUser {
  return { uid: id, gid: id };
}

/** A directory of the host that a jail can hide without needing it. */
export function chooseStage(): string {
  const stage = ["/mnt", "/media", "/srv", "/run"].find((path) => existsSync(path));
  if (stage !== undefined) return stage;
  throw new SandboxError("no_isolation", "no directory to collect the mounts of a sandbox in: make /mnt");
}

import { type Container, containerCommand, findContainer } from "../../machine/container.js";
import { isCapable, type Standing, standing } from "../../machine/standing.js";

const USER = "--user 1000:1000";
/** A volume is on the engine's own file system, which can be attached for another user. The files of a container are on an overlay, which can't. */
const VOLUME = "-v /tmp -e GLOVEBOX_HOME=/tmp/glovebox";
const SWITCH =
  "allow unprivileged user namespaces (sysctl kernel.apparmor_restrict_unprivileged_userns=0), or use the docker backend";

/** Who opens the sandbox, and where. */
interface Opener {
  container: Container | undefined;
  who: Standing;
  /** Whether root can be mapped in a user namespace: it takes CAP_SETFCAP. */
  canMapRoot: boolean;
}

/** What lets a jail be made whose launcher or bubblewrap ended with this complaint; undefined where nobody knows. */
export function hintFor(complaint: string, opener: Opener = thisProcess()): string | undefined {
  const { container } = opener;
  if (complaint.includes("cannot be attached for another user")) {
    return container === undefined
      ? "set TMPDIR and GLOVEBOX_HOME to directories on ext4, xfs or btrfs: a tmpfs can be attached since Linux 6.3"
      : containerHint(container, opener);
  }
  if (container !== undefined && /cannot mount .*: Invalid argument/.test(complaint)) {
    return `an overlay can't be on the container's own overlay: add ${VOLUME} to the command that starts the container`;
  }
  if (!/uid map|RTM_NEWADDR|namespace|Operation not permitted/i.test(complaint)) return undefined;
  return container === undefined ? SWITCH : containerHint(container, opener);
}

/** The command that starts a container like this one in which sandboxes open. */
export function containerHint(
  container: Container,
  { who, canMapRoot }: Omit<Opener, "container"> = thisProcess(),
): string {
  const isUser = who === "user" || (who === "bare-root" && canMapRoot);
  const line = `start the container with: ${containerCommand(container, ...(isUser ? [] : [USER]))}`;
  return who === "root" ? `${line}; or, as root with SYS_ADMIN, replace ${USER} by ${VOLUME}` : line;
}

function thisProcess(): Opener {
  return { container: findContainer(), who: standing(), canMapRoot: isCapable("SETFCAP") };
}

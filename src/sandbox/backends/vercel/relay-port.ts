import type { Session } from "@vercel/sandbox";
import { SandboxError } from "../../../../contracts/errors.js";
import { RelayLines, type RelayPort } from "../../guest.js";
import { isPassing, retryAfter, toVercelError } from "./failure.js";

/** Where a guest runs, and as which user. */
export interface RelayPlace {
  readonly session: Session;
  /** Path of the guest in the sandbox. */
  readonly program: string;
  /** Directory of the letters. */
  readonly directory: string;
  readonly root: string;
  /** Absent: the machine's own user. */
  readonly user?: string;
  onBusy(busy: boolean): void;
  /** Called with the milliseconds that the service asked to wait. */
  onPause(ms: number): void;
}

const MAX_COMPLAINT = 2_000;

/** Reaches a guest through the service's files and commands. Every operation can be repeated safely. */
export function createRelayPort(place: RelayPlace): RelayPort {
  const { session, program, directory, root, user, onBusy, onPause } = place;
  // The machine's own user writes the letters; the guest's user reads and removes them. The program is in the first directory, so others may pass
  // through it, but not read it.
  const mode = user === undefined ? "711" : "777";
  const letterMode = user === undefined ? 0o600 : 0o644;
  let complaint = "";
  return {
    decoder: new RelayLines(),
    onBusy,
    post: (number, letter, signal) =>
      session.writeFiles([{ path: `${directory}/${number}`, content: letter, mode: letterMode }], { signal }),
    async *listen(how, position, signal) {
      const words = [program, "relay", how, directory, directory, mode, root, String(position)];
      const [cmd = "", ...args] =
        user === undefined || user === "root" ? words : ["runuser", "-u", user, "--", ...words];
      const command = await session.runCommand({
        cmd,
        args,
        cwd: "/",
        detached: true,
        signal,
        ...(user !== undefined && { sudo: true }),
      });
      let isSilent = true;
      for await (const { stream, data } of command.logs({ signal })) {
        isSilent = false;
        if (stream === "stdout") yield data;
        else if (complaint.length < MAX_COMPLAINT) complaint += data;
      }
      if (complaint !== "" || isSilent) await explain(command.wait({ signal }), complaint, user);
    },
    async fetch(name, signal) {
      const bytes = await session.readFileToBuffer({ path: `${directory}/${name}` }, { signal });
      if (bytes === null) throw new Error(`${name} does not exist`);
      return bytes;
    },
    pause(error) {
      const ms = retryAfter(error);
      if (ms !== undefined) onPause(ms);
      return ms;
    },
    verdict: (error) => (isPassing(error) ? undefined : toVercelError(error)),
  };
}

/** Explains why a guest did not start, with what it printed. */
async function explain(ended: Promise<{ exitCode: number }>, complaint: string, user?: string): Promise<void> {
  const { exitCode } = await ended;
  if (exitCode === 0) return;
  const said = complaint.trim() || `it ended with ${exitCode}`;
  if (user !== undefined && /does not exist|unknown user/i.test(said)) {
    throw new SandboxError("not_found", `There is no user "${user}" in the sandbox`);
  }
  throw new SandboxError("unavailable", `The guest could not be started in the machine: ${said}`);
}

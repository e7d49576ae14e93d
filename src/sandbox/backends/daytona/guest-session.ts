import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { SandboxError } from "../../../../contracts/errors.js";
import { shellQuote } from "../../../util/shell.js";
import { GuestChannel, guestBinary } from "../../guest.js";
import type { RemoteSandbox } from "./client.js";
import { diagnose, isPassing, persist } from "./failure.js";
import { SessionLink } from "./session-link.js";

/** The guest in a sandbox, and the session that it runs in. */
export interface GuestSession {
  readonly channel: GuestChannel;
  readonly link: SessionLink;
  /** The architecture: `x64` or `arm64`. */
  readonly arch: string;
  /** The PATH of the image. */
  readonly path: string | undefined;
  /** The commit of the work directory, if it is a repository. */
  readonly head: string | undefined;
  /** Ends the guest and everything it started; resolves once the session is gone. */
  stop(): Promise<void>;
}

/** The directories in the sandbox. */
export interface Place {
  readonly home: string;
  readonly workDir: string;
  /** Used only by us: the guest, and files in transit. */
  readonly folder: string;
}

const START_TIMEOUT = 60_000;
const ATTEMPTS = 3;
const ARCHITECTURES: Readonly<Record<string, string>> = { x86_64: "x64", aarch64: "arm64" };

/** Path of the guest in the sandbox. */
export function guestPath({ folder }: Place, arch = "x64"): string {
  return `${folder}/guest-${arch}`;
}

/** Uploads the guest into a sandbox. It is made executable when it is started. */
export async function uploadGuest(remote: RemoteSandbox, place: Place, arch = "x64"): Promise<void> {
  const source = await readFile(guestBinary(arch));
  try {
    await persist(() => remote.fs.uploadFiles([{ source, destination: guestPath(place, arch) }]));
  } catch (error) {
    throw await diagnose(remote, error, "the upload of the guest");
  }
}

/** Starts the uploaded guest in a session of its own. */
export async function startGuest(remote: RemoteSandbox, place: Place, arch = "x64"): Promise<GuestSession> {
  const { sessionId, commandId } = await open(remote, startCommand(place, arch));
  const link = new SessionLink({ remote, sessionId, commandId });
  const channel = new GuestChannel(link);
  const drop = (): Promise<void> => remote.process.deleteSession(sessionId).catch(() => undefined);
  const late = setTimeout(
    () => channel.close(new SandboxError("unavailable", "Daytona: the guest did not start in time")),
    START_TIMEOUT,
  );
  try {
    await channel.hello;
  } catch (error) {
    await drop();
    const other = ARCHITECTURES[link.facts.get("machine") ?? ""];
    if (other === undefined || other === arch) throw explain(error, link.complaint);
    await uploadGuest(remote, place, other);
    return await startGuest(remote, place, other);
  } finally {
    clearTimeout(late);
  }
  const stop = async (): Promise<void> => {
    await link.quit().catch(() => undefined);
    channel.close();
    await drop();
  };
  return { channel, link, arch, path: link.facts.get("path"), head: link.facts.get("head"), stop };
}

/** The shell only reports what it runs on: the command must not be one that could end the shell. */
function startCommand(place: Place, arch: string): string {
  const machine = Object.entries(ARCHITECTURES).find(([, name]) => name === arch)?.[0] ?? arch;
  const guest = shellQuote([guestPath(place, arch)]);
  const workDir = shellQuote([place.workDir]);
  const head = `git -C ${workDir} rev-parse --verify --quiet HEAD 2>/dev/null`;
  const facts = `printf '@machine %s\\n@path %s\\n@head %s\\n' "$(uname -m)" "$PATH" "$(${head})"`;
  const run = `mkdir -p ${workDir} && chmod 700 ${guest} && ${guest} serve-text ${workDir}`;
  return `${facts}; if [ "$(uname -m)" = ${machine} ]; then ${run}; else false; fi`;
}

/** Opens a session with a command in it. If the answer was lost, opens another: a guest without a request does nothing. */
async function open(remote: RemoteSandbox, command: string): Promise<{ sessionId: string; commandId: string }> {
  for (let attempt = 1; ; attempt++) {
    const sessionId = `glovebox-${randomBytes(6).toString("hex")}`;
    try {
      await remote.process.createSession(sessionId);
      const request = { command, runAsync: true, suppressInputEcho: true };
      const { cmdId } = await remote.process.executeSessionCommand(sessionId, request);
      if (cmdId !== undefined && cmdId !== "") return { sessionId, commandId: cmdId };
      throw new SandboxError("internal", "Daytona: a command without an id");
    } catch (error) {
      await remote.process.deleteSession(sessionId).catch(() => undefined);
      if (attempt >= ATTEMPTS || !isPassing(error)) throw await diagnose(remote, error, "the start of the guest");
    }
  }
}

function explain(error: unknown, complaint: string): unknown {
  if (!(error instanceof SandboxError) || complaint.trim() === "") return error;
  return new SandboxError(error.code, `${error.message}: ${complaint.trim()}`, { cause: error });
}

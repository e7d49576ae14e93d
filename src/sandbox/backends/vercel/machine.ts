import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { Sandbox, Session } from "@vercel/sandbox";
import { SandboxError } from "../../../../contracts/errors.js";
import { GuestChannel, guestBinary, RelayStream } from "../../guest.js";
import { toVercelError } from "./failure.js";
import { MachineLifetime } from "./lifetime.js";
import { patiently } from "./patience.js";
import { createRelayPort } from "./relay-port.js";

const START_TIMEOUT = 60_000;
const USER = /^[a-z_][a-z0-9_-]{0,31}\$?$/;
/** The architecture of all machines of the service. */
const ARCHITECTURE = "x64";

/** How a machine is reached. */
export interface MachineOptions {
  /** The timeout of the session, in milliseconds. */
  readonly timeout: number;
  /** How long to wait if the service asks for it, in milliseconds. */
  readonly patience: number;
  /** Absent: the directory that the service starts commands in. */
  readonly workDir?: string | undefined;
  /** Whether the work directory has yet to be made. */
  readonly isNew?: boolean;
  warn(message: string): void;
  /** When its sandbox expires, ISO 8601. Absent: never. */
  readonly expiresAt?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** One running machine of the service with our guest in it, and one more guest for each other user. */
export class Machine {
  readonly sandbox: Sandbox;
  readonly session: Session;
  readonly channel: GuestChannel;
  readonly baseEnv: Readonly<Record<string, string>>;
  readonly workDir: string;
  readonly #place: string;
  readonly #patience: number;
  readonly #lifetime: MachineLifetime;
  readonly #others: Map<string, Promise<GuestChannel>> = new Map();

  private constructor(
    sandbox: Sandbox,
    parts: {
      place: string;
      workDir: string;
      patience: number;
      lifetime: MachineLifetime;
      channel: GuestChannel;
      env: Readonly<Record<string, string>>;
    },
  ) {
    this.sandbox = sandbox;
    this.session = sandbox.currentSession();
    this.channel = parts.channel;
    this.baseEnv = parts.env;
    this.workDir = parts.workDir;
    this.#place = parts.place;
    this.#patience = parts.patience;
    this.#lifetime = parts.lifetime;
  }

  /** Uploads the guest into a started machine, and waits until it answers. */
  static async start(sandbox: Sandbox, opts: MachineOptions): Promise<Machine> {
    const { timeout, patience, warn, signal, expiresAt } = opts;
    const session = sandbox.currentSession();
    const { workDir = session.cwd } = opts;
    const place = `/tmp/.glovebox-${randomBytes(8).toString("hex")}`;
    const lifetime = new MachineLifetime(session, timeout, warn, expiresAt);
    try {
      const content = await readFile(guestBinary(ARCHITECTURE));
      const files = [{ path: programIn(place), content, mode: 0o755 }];
      await patiently(
        Math.max(START_TIMEOUT, patience),
        () => session.writeFiles(files, { ...(signal && { signal }) }),
        signal,
      );
      signal?.throwIfAborted();
      if (opts.isNew === true && workDir !== session.cwd) await makeWorkDir(session, workDir, signal);
      const where = { session, place, workDir, patience, lifetime };
      const { channel, stream } = await openChannel(where, undefined, signal);
      const { PATH = "/usr/local/bin:/usr/bin:/bin", HOME = session.cwd, LANG = "C.UTF-8" } = stream.environment;
      return new Machine(sandbox, { place, workDir, patience, lifetime, channel, env: { PATH, HOME, LANG } });
    } catch (error) {
      throw toVercelError(error, "open");
    }
  }

  /** The guest that runs commands as this user, started when it is first needed. */
  async channelFor(user: string | undefined): Promise<GuestChannel> {
    if (user === undefined) return this.channel;
    if (!USER.test(user)) throw new SandboxError("invalid_argument", `Invalid user: expected a name, got "${user}"`);
    const known = this.#others.get(user);
    if (known !== undefined) return await known;
    const { session, workDir } = this;
    const where = { session, workDir, place: this.#place, patience: this.#patience, lifetime: this.#lifetime };
    const opening = openChannel(where, user).then(({ channel }) => channel);
    this.#others.set(user, opening);
    opening.catch(() => this.#others.delete(user));
    return await opening;
  }

  /** Ends every connection to the machine; the service handles what still runs on it. */
  async close(error?: SandboxError): Promise<void> {
    this.channel.close(error);
    for (const other of this.#others.values())
      await other.then((channel) => channel.close(error)).catch(() => undefined);
  }
}

function programIn(place: string): string {
  return `${place}/guest`;
}

/** Makes a work directory for the machine's own user, who could not make it everywhere. */
async function makeWorkDir(session: Session, workDir: string, signal: AbortSignal | undefined): Promise<void> {
  const script = 'mkdir -p -- "$1" && chown --reference="$2" -- "$1"';
  const args = ["-c", script, "sh", workDir, session.cwd];
  const how = { ...(signal && { signal }) };
  const command = await session.runCommand({ cmd: "sh", args, cwd: "/", sudo: true, detached: true, ...how });
  const { exitCode } = await command.wait(how);
  if (exitCode === 0) return;
  throw new SandboxError("permission_denied", `workDir "${workDir}" could not be made in the machine`, {
    hint: "name another folder, or an image whose user may become root",
  });
}

async function openChannel(
  {
    session,
    place,
    workDir,
    patience,
    lifetime,
  }: { session: Session; place: string; workDir: string; patience: number; lifetime: MachineLifetime },
  user?: string,
  signal?: AbortSignal,
): Promise<{ channel: GuestChannel; stream: RelayStream }> {
  let late: NodeJS.Timeout | undefined;
  const latest = performance.now() + Math.max(START_TIMEOUT, patience);
  const expectAnswer = (within: number): void => {
    clearTimeout(late);
    late = setTimeout(
      () => channel.close(new SandboxError("unavailable", "the guest did not answer in time")),
      Math.min(within, latest - performance.now()),
    );
  };
  const stream = new RelayStream(
    createRelayPort({
      session,
      program: programIn(place),
      directory: user === undefined ? place : `${place}-${user}`,
      root: workDir,
      onBusy: (busy) => lifetime.hold(busy),
      // The time that the service asks to wait does not count as the guest's.
      onPause: (ms) => {
        if (late !== undefined) expectAnswer(START_TIMEOUT + ms);
      },
      ...(user !== undefined && { user }),
    }),
  );
  const channel = new GuestChannel(stream);
  expectAnswer(START_TIMEOUT);
  const onAbort = (): void => channel.close(new SandboxError("aborted", "opening the sandbox was aborted"));
  signal?.addEventListener("abort", onAbort, { once: true });
  try {
    await channel.hello;
  } finally {
    clearTimeout(late);
    late = undefined;
    signal?.removeEventListener("abort", onAbort);
  }
  channel.unref();
  return { channel, stream };
}

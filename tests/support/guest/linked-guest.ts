import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { guestBinary } from "../../../src/sandbox/guest/binary.js";
import { GuestChannel } from "../../../src/sandbox/guest/channel.js";
import { startCommand } from "../../../src/sandbox/guest/guest-process.js";
import { createLink, type Link, type LinkConnection } from "../../../src/sandbox/guest/relay-link.js";
import { RelayStream } from "../../../src/sandbox/guest/relay-stream.js";
import type { DriverProcess, StartSpec } from "../../../src/sandbox/types.js";
import { type Ran, text } from "./plain-guest.js";

/** Nobody's: without capabilities, like a container that may do nothing. */
const OWN_USER = "--reuid 65534 --regid 65534 --clear-groups --inh-caps -all --bounding-set -all --no-new-privs".split(
  " ",
);

/** A guest that is process 1 of namespaces of its own, and is reached as the one in a pod is. */
export interface LinkedGuest {
  readonly root: string;
  readonly program: string;
  /** How much of a processor it has used, in ms. */
  used(): number;
  /** The exit code, once it has ended. */
  readonly ended: Promise<number | null>;
  /** Starts a relay beside it, from outside. */
  relay(): ChildProcess;
  /** Connects as a host does. */
  connect(opts?: { patience?: number; hears?: () => boolean; keeps?: boolean }): LinkedHost;
  /** Ends all relays without a word, and says how many there were. */
  cut(): number;
  /** From now on no relay starts, until `rejoin`. */
  part(): void;
  rejoin(): void;
  stop(): Promise<void>;
}

/** One host's connection to it. */
export interface LinkedHost {
  readonly channel: GuestChannel;
  readonly stream: RelayStream<Uint8Array>;
  readonly link: Link;
  /** What a connection of this host would begin with now: its token, and the position of what it has. */
  greeting(): Buffer;
  start(argv: readonly string[], more?: Partial<StartSpec>): Promise<DriverProcess>;
  run(argv: readonly string[], more?: Partial<StartSpec>): Promise<Ran>;
}

/** Starts one. `lease`: in seconds. */
export async function startLinkedGuest({
  lease = 60,
  how,
}: {
  lease?: number;
  how?: "kept" | "warm";
} = {}): Promise<LinkedGuest> {
  const scratch = realpathSync(mkdtempSync(join(tmpdir(), "glovebox-linked-")));
  chmodSync(scratch, 0o755);
  const root = join(scratch, "root");
  mkdirSync(root);
  chmodSync(root, 0o777);
  const program = join(scratch, "guest");
  copyFileSync(guestBinary(), program);
  chmodSync(program, 0o111);
  const words = [program, "serve", "--linked", String(lease), ...(how === undefined ? [] : [`--${how}`]), root];
  const namespaces = ["--pid", "--net", "--ipc", "--fork", "--kill-child", "--mount-proc"];
  const child = spawn("unshare", [...namespaces, "setpriv", ...OWN_USER, ...words], {
    stdio: ["ignore", "ignore", "inherit"],
    env: { PATH: "/usr/bin:/bin", MARK: "of the image" },
    cwd: "/",
  });
  const ended = once(child, "exit").then(([code]) => code as number | null);
  const relays = new Set<ChildProcess>();
  const hosts = new Set<GuestChannel>();
  let isParted = false;
  const relay = (): ChildProcess => {
    const [first] = childrenOf(child.pid as number);
    const enter = ["--target", String(first), "--pid", "--net", "--ipc", "--mount"];
    const started = spawn("nsenter", [...enter, "setpriv", ...OWN_USER, program, "relay", "attach"], {
      stdio: "pipe",
      cwd: "/",
    });
    relays.add(started);
    started.once("exit", () => relays.delete(started));
    started.stdin.on("error", () => undefined);
    return started;
  };
  const connect = ({ patience = 20_000, hears = (): boolean => true, keeps = false } = {}): LinkedHost => {
    let token = Buffer.alloc(0);
    const link = createLink({
      keeps,
      verdict: () => undefined,
      connect: async () => {
        if (isParted) throw new Error("parted");
        const made = connectionOf(relay());
        const write = (bytes: Uint8Array): void => {
          if (token.length === 0) token = Buffer.from(bytes.subarray(0, 32));
          made.write(bytes);
        };
        return { ...made, input: heardOf(made.input, hears), write };
      },
    });
    const stream = new RelayStream(link, { silence: 15_000, patience });
    const channel = new GuestChannel(stream);
    hosts.add(channel);
    const start = (argv: readonly string[], more: Partial<StartSpec> = {}): Promise<DriverProcess> =>
      startCommand(channel, { argv, cwd: root, env: { PATH: "/usr/bin:/bin" }, stdin: "none", ...more }, "");
    const run = async (argv: readonly string[], more?: Partial<StartSpec>): Promise<Ran> => {
      const process = await start(argv, more);
      const [stdout, stderr, exit] = await Promise.all([text(process.stdout), text(process.stderr), process.wait()]);
      return { ...exit, stdout, stderr };
    };
    const greeting = (): Buffer => greetingOf(token, link.decoder.position);
    return { channel, stream, link, greeting, start, run };
  };
  const cut = (): number => {
    const inside = [...relays].flatMap(({ pid = 0 }) => childrenOf(pid));
    for (const pid of inside) process.kill(pid, "SIGKILL");
    return inside.length;
  };
  const stop = async (): Promise<void> => {
    isParted = true;
    for (const channel of hosts) channel.close();
    // Process 1 itself: a change of the user has made it forget its parent.
    for (const pid of childrenOf(child.pid as number)) process.kill(pid, "SIGKILL");
    await ended;
    for (const each of relays) each.kill("SIGKILL");
    rmSync(scratch, { recursive: true, force: true });
  };
  await until(() => childrenOf(child.pid as number).some(isListening));
  return {
    root,
    program,
    used: () => usedBy(childrenOf(child.pid as number)[0] as number),
    ended,
    relay,
    connect,
    cut,
    part: () => {
      isParted = true;
      cut();
    },
    rejoin: () => {
      isParted = false;
    },
    stop,
  };
}

/** What a connection begins with. */
export function greetingOf(token: Uint8Array, position: number): Buffer {
  const at = Buffer.alloc(8);
  at.writeBigUInt64LE(BigInt(position));
  return Buffer.concat([token, at]);
}

/** What is not heard is lost, as on a way that is cut. */
async function* heardOf(input: AsyncIterable<Uint8Array>, hears: () => boolean): AsyncGenerator<Uint8Array> {
  for await (const chunk of input) if (hears()) yield chunk;
}

/** In ms; the kernel counts in hundredths of a second. */
function usedBy(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const [user, system] = stat
    .slice(stat.lastIndexOf(")") + 2)
    .split(" ")
    .slice(11, 13)
    .map(Number);
  return 10 * ((user ?? 0) + (system ?? 0));
}

function childrenOf(pid: number): number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

/** Whether the guest has its socket: before that, a relay finds nobody. */
function isListening(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/net/unix`, "utf8").includes(" @glovebox\n");
  } catch {
    return false;
  }
}

async function until(isDone: () => boolean): Promise<void> {
  while (!isDone()) await new Promise((resolve) => setTimeout(resolve, 5));
}

function connectionOf(relay: ChildProcess): LinkConnection {
  const { stdin, stdout } = relay;
  if (stdin === null || stdout === null) throw new Error("a relay has its streams");
  const gone = once(relay, "exit");
  return {
    input: stdout as AsyncIterable<Uint8Array>,
    write: (bytes) => void stdin.write(bytes),
    end: async () => {
      stdin.end();
      await gone;
    },
    destroy: () => void relay.kill("SIGKILL"),
    ref: () => relay.ref(),
    unref: () => relay.unref(),
  };
}

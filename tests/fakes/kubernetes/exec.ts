import type { Duplex } from "node:stream";
import { MISSING, type RunningPod } from "./pod-process.js";
import { badRequest, notFound, Refusal } from "./refusal.js";
import type { Stored } from "./store.js";
import { acceptUpgrade, type Peer } from "./web-socket.js";

const V5 = "v5.channel.k8s.io";
const V4 = "v4.channel.k8s.io";
/** What the server reads of a program's output at a time. */
const MOST_AT_ONCE = 32 << 10;

/** What an exec asks for. */
export interface ExecOrder {
  readonly container: string;
  readonly argv: readonly string[];
  readonly isFor: { readonly stdin: boolean; readonly stdout: boolean; readonly stderr: boolean };
}

/** Reads what an exec asks for, and refuses what a server refuses. */
export function readExec(pod: Stored | undefined, name: string, query: URLSearchParams): ExecOrder {
  if (pod === undefined) throw notFound("pods", name);
  const isSet = (key: string): boolean => ["true", "1"].includes(query.get(key) ?? "");
  const isFor = { stdin: isSet("stdin"), stdout: isSet("stdout"), stderr: isSet("stderr") };
  const argv = query.getAll("command");
  if (!isFor.stdin && !isFor.stdout && !isFor.stderr)
    throw badRequest("you must specify at least 1 of stdin, stdout, stderr");
  if (isSet("tty") && isFor.stderr) throw badRequest("tty and stderr cannot both be true");
  if (argv.length === 0) throw badRequest("you must specify at least one command for the container");
  const names = (pod["spec"].containers as { name: string }[]).map((each) => each.name);
  const container = query.get("container") ?? (names.length === 1 ? (names[0] ?? "") : "");
  if (container === "")
    throw badRequest(`a container name must be specified for pod ${name}, choose one of: [${names.join(" ")}]`);
  if (!names.includes(container)) throw badRequest(`container ${container} is not valid for pod ${name}`);
  if (["Succeeded", "Failed"].includes(pod["status"]?.phase)) {
    throw badRequest(`cannot exec into a container in a completed pod; current phase is ${pod["status"].phase}`);
  }
  return { container, argv, isFor };
}

/** The first protocol that a client offers and this server speaks. */
export function chooseProtocol(offered: string, hasV5: boolean): string {
  const known = offered.split(",").map((each) => each.trim());
  const chosen = known.find((each) => each === V4 || (hasV5 && each === V5));
  if (chosen === undefined)
    throw new Refusal(
      403,
      "Forbidden",
      `unable to upgrade: websocket server started on incompatible protocols: ${offered}`,
    );
  return chosen;
}

/** A program that runs for a client. */
export interface Session {
  readonly pod: string;
  /** The connection is gone, without a word. */
  drop(): void;
  /** The connection is closed in good order, and no one says how the program ended. */
  closeWithoutStatus(): void;
}

/** Runs a program in a pod for one connection. Whatever happens to the connection, the program only sees the end of its input. */
export function serveExec(
  {
    pod,
    running,
    order,
    protocol,
    key,
    head,
  }: { pod: string; running: RunningPod; order: ExecOrder; protocol: string; key: string; head: Buffer },
  socket: Duplex,
  onEnd: (session: Session) => void,
): Session {
  const peer = acceptUpgrade(socket, key, protocol, head);
  const program = running.exec(order.argv);
  const { stdin, stdout, stderr } = program.child;
  const session: Session = {
    pod,
    drop: () => peer.drop(),
    closeWithoutStatus: () => peer.close(1000),
  };
  let isOpen = true;
  stdin.on("error", () => undefined);
  const send = (channel: number, bytes: Buffer): boolean => peer.send(Buffer.concat([Buffer.from([channel]), bytes]));
  // So the client knows that the connection stands.
  send(order.isFor.stdout ? 1 : order.isFor.stderr ? 2 : 3, Buffer.alloc(0));

  for (const [channel, stream, isWanted] of [
    [1, stdout, order.isFor.stdout],
    [2, stderr, order.isFor.stderr],
  ] as const) {
    stream.on("data", (chunk: Buffer) => {
      if (!isWanted || !isOpen) return;
      let hasRoom = true;
      for (let at = 0; at < chunk.length; at += MOST_AT_ONCE)
        hasRoom = send(channel, chunk.subarray(at, at + MOST_AT_ONCE));
      if (!hasRoom) stream.pause();
    });
  }
  peer.onRoom = () => {
    stdout.resume();
    stderr.resume();
  };
  peer.onMessage = (message) => receive(message, stdin, protocol, order.isFor.stdin, peer);
  peer.onTooLong = () => {
    if (protocol === V5) peer.close(1000);
    else peer.drop();
  };
  peer.onEnd = () => {
    isOpen = false;
    stdin.end();
    stdout.resume();
    stderr.resume();
    onEnd(session);
  };
  program.child.once("close", (code) => {
    if (!isOpen) return;
    send(3, Buffer.from(JSON.stringify(statusOf(code ?? 137, order.argv))));
    peer.close(1000);
  });
  return session;
}

function receive(message: Buffer, stdin: NodeJS.WritableStream, protocol: string, hasStdin: boolean, peer: Peer): void {
  const [channel, second] = message;
  if (channel === 0 && hasStdin) stdin.write(message.subarray(1));
  else if (channel === 255 && protocol === V5 && second === 0) stdin.end();
  else if (channel !== 4) peer.drop();
}

/** How a program ended, in the words of a kubelet. */
function statusOf(code: number, argv: readonly string[]): object {
  if (code === 0) return { metadata: {}, status: "Success" };
  if (code === MISSING) {
    const message = `Internal error occurred: error executing command in container: failed to exec in container: failed to start exec: OCI runtime exec failed: exec failed: unable to start container process: exec: "${argv[0]}": executable file not found in $PATH: unknown`;
    return {
      metadata: {},
      status: "Failure",
      message,
      reason: "InternalError",
      details: { causes: [{ message }] },
      code: 500,
    };
  }
  const message = `command terminated with non-zero exit code: error executing command ${JSON.stringify(argv)}, exit code ${code}`;
  const causes = [{ reason: "ExitCode", message: String(code) }];
  return { metadata: {}, status: "Failure", message, reason: "NonZeroExitCode", details: { causes } };
}
